package charts

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestLandscapeValues: values of gardener-extension-registry-cache, and an image vector of a whole
// landscape, are accepted. Otherwise gardenlet could not install the extension on a seed.
func TestLandscapeValues(t *testing.T) {
	const digest = "sha256:1be55279f18a2fe1a74edf2664cac61c1bea305b7b4642dab412e7affdcb3e33"
	for name, test := range map[string]struct{ chart, values, want string }{
		"digest":             {extensionChart, "image: {repository: r.test/x, tag: " + digest + "}", "image: r.test/x@" + digest},
		"digest, admission":  {admissionRuntime, "image: {repository: r.test/x, tag: " + digest + "}", "image: r.test/x@" + digest},
		"tag":                {extensionChart, "image: {repository: r.test/x, tag: v1}", "image: r.test/x:v1"},
		"OCM resource":       {extensionChart, "imageVectorOverwrite: {images: [{name: registry-cache, ref: a/b:c, resourceId: {name: x}}]}", "resourceId"},
		"another component":  {extensionChart, "imageVectorOverwrite: {images: [{name: etcd, ref: a/b:c}]}", "name: etcd"},
		"reconciliations":    {extensionChart, "controllers: {extension: {concurrentSyncs: 7}}", "--max-concurrent-reconciles=7"},
		"operations":         {extensionChart, "controllers: {ignoreOperationAnnotation: true}", "--ignore-operation-annotation=true"},
		"controllers":        {extensionChart, "disableControllers: [a, b]", "--disable-controllers=a,b"},
		"no controllers":     {extensionChart, "disableControllers: []", "--max-concurrent-reconciles"},
		"metrics":            {extensionChart, "metrics: {enableScraping: true, port: 9090}", "--metrics-bind-address=:9090"},
		"webhook":            {extensionChart, "webhookConfig: {servicePort: 444, serverPort: 10251}", "--webhook-config-server-port=10251"},
		"heartbeat":          {extensionChart, "controllers: {heartbeat: {renewIntervalSeconds: 60}}", "--heartbeat-renew-interval-seconds=60"},
		"autoscaler":         {extensionChart, "vpa: {enabled: true, updatePolicy: {updateMode: 'Off'}}", `updateMode: "Off"`},
		"bounds":             {extensionChart, "vpa: {enabled: true, resourcePolicy: {maxAllowed: {memory: 3Gi}}}", "memory: 3Gi"},
		"admission, bounds":  {admissionRuntime, "vpa: {enabled: true, resourcePolicy: {maxAllowed: {memory: 3Gi}}}", "memory: 3Gi"},
		"admission, off":     {admissionRuntime, "vpa: {enabled: true, updatePolicy: {updateMode: 'Off'}}", `updateMode: "Off"`},
		"admission, webhook": {admissionRuntime, "webhookConfig: {servicePort: 444}", "--webhook-config-service-port=444"},
		"zones":              {admissionRuntime, "service: {topologyAwareRouting: {enabled: true}}", "trafficDistribution: PreferSameZone"},
		"kubeconfig":         {admissionRuntime, "kubeconfig: abc", "kubeconfig: YWJj"},
		"projected": {admissionRuntime, "projectedKubeconfig: {baseMountPath: /var/x, genericKubeconfigSecretName: generic, tokenSecretName: token}",
			"--kubeconfig=/var/x/kubeconfig"},
		"own account": {admissionApplication, "{}", "kind: ServiceAccount\nmetadata:\n  name: gardener-extension-registry-cache-admission\n"},
	} {
		t.Run(name, func(t *testing.T) {
			values := map[string]any{}
			if err := yaml.UnmarshalStrict([]byte(test.values), &values); err != nil {
				t.Fatal(err)
			}
			if _, set := values["image"]; !set {
				values["image"] = map[string]any{"ref": "registry.test/x:v1"}
			}
			manifest, err := render(t, test.chart, values)
			if err != nil {
				t.Fatal(err)
			}
			if decode(t, manifest); !strings.Contains(string(manifest), test.want) {
				t.Errorf("the manifest lacks %q", test.want)
			}
		})
	}
}

// TestLandscapeCABundle: an image vector with a CA bundle is accepted, and the pod does not get the
// bundle. It would not start after a certificate of the bundle expires.
func TestLandscapeCABundle(t *testing.T) {
	values := map[string]any{
		"image": map[string]any{"ref": "registry.test/x:v1"},
		"imageVectorOverwrite": map[string]any{
			"images":   []any{map[string]any{"name": "registry-cache", "ref": "a/b:c"}},
			"caBundle": map[string]any{"inline": "-----BEGIN CERTIFICATE-----"},
		},
	}
	manifest, err := render(t, extensionChart, values)
	if err != nil {
		t.Fatal(err)
	}
	if text := string(manifest); !strings.Contains(text, "ref: a/b:c") || strings.Contains(text, "BEGIN CERTIFICATE") {
		t.Errorf("manifest:\n%s", text)
	}
}

// TestSelfHosted: gardenadm passes no seed, but the shoot and free ports. At first, the pod shares
// the network of a node, where the ports of the values are taken: 10250 is kubelet's.
func TestSelfHosted(t *testing.T) {
	values := map[string]any{
		"image":       map[string]any{"ref": "registry.test/x:v1"},
		"gardener":    map[string]any{"version": "v1.150.0", "selfHostedShootCluster": true, "shoot": map[string]any{"name": "s"}},
		"usablePorts": []any{34001, 34002, 34003, 34004, 34005},
	}
	manifest, err := render(t, extensionChart, values)
	if err != nil {
		t.Fatal(err)
	}
	decode(t, manifest)
	text := string(manifest)
	for want, count := range map[string]int{
		"34001": 4, "34002": 4, "34003": 2, // metrics, webhook, health
		"--metrics-bind-address=:34001": 1, "--webhook-config-server-port=34002": 1, "--health-bind-address=:34003": 1,
		"--webhook-config-service-port=443": 1, `"8080"`: 0, "8081": 0, "10250": 0,
	} {
		if got := strings.Count(text, want); got != count {
			t.Errorf("the manifest contains %q %d times, want %d", want, got, count)
		}
	}
}
