package cache

import (
	"bytes"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	vpaautoscalingv1 "k8s.io/autoscaler/vertical-pod-autoscaler/pkg/apis/autoscaling.k8s.io/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener/gardener/pkg/client/kubernetes"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/internal/golden"
)

const upstream = "docker.io"

var (
	shoot = Shoot{
		Image:             "registry.example/registry-cache:v1",
		KubernetesVersion: "1.36.4",
		Networks:          []string{"100.64.0.0/12", "fd00:10:64::/56", "10.250.0.0/16"},
	}
	credentials = &Credentials{Username: []byte("@robot"), Password: []byte("it's \"$#&:\"\r\n\xff")}
	accessKey   = &AccessKey{ID: []byte("AKIAEXAMPLE"), Secret: []byte("a+/b"), SessionToken: []byte("token"), RoleARN: []byte("arn:aws:iam::123456789012:role/puller")}
	certificate = &Certificate{Certificate: []byte("a certificate\n"), PrivateKey: []byte("a key\n")}
	caBundle    = []byte("-----BEGIN CERTIFICATE-----\nYQ==\n-----END CERTIFICATE-----\n")
)

// rendering is a cache and everything else that determines its objects.
type rendering struct {
	cache   v1alpha3.RegistryCache
	shoot   Shoot
	secrets Secrets
}

// renderings returns one case for each field of the API, and one case with all fields. The golden
// file of a case is named after it.
func renderings() map[string]rendering {
	tls := &v1alpha3.HTTP{TLS: true}
	withAutoscaler, old, mixed := shoot, shoot, shoot
	withAutoscaler.VerticalPodAutoscaler = true
	mixed.Architectures = []string{"arm64"}
	old.KubernetesVersion = "v1.33.4"
	proxy := &v1alpha3.Proxy{
		HTTPProxy:  ptr.To("http://proxy.example:3128"),
		HTTPSProxy: ptr.To("https://proxy.example:3129"),
		NoProxy:    ptr.To("registry.corp.example,10.250.0.0/16,.corp.example:5000"),
	}
	return map[string]rendering{
		"docker.io":      {v1alpha3.RegistryCache{Upstream: upstream}, shoot, Secrets{}},
		"kubernetes1.33": {v1alpha3.RegistryCache{Upstream: upstream}, old, Secrets{}},
		"architectures":  {v1alpha3.RegistryCache{Upstream: upstream, HighAvailability: &v1alpha3.HighAvailability{Enabled: true}}, mixed, Secrets{}},
		"volume": {v1alpha3.RegistryCache{
			Upstream:          "alpha-1.upstream.test:5443",
			RemoteURL:         ptr.To("http://alpha.upstream.test"),
			Volume:            &v1alpha3.Volume{Size: ptr.To(resource.MustParse("1Gi")), StorageClassName: ptr.To("fast")},
			GarbageCollection: &v1alpha3.GarbageCollection{TTL: metav1.Duration{Duration: 90 * time.Minute}},
		}, shoot, Secrets{}},
		"no-garbage-collection": {v1alpha3.RegistryCache{
			Upstream:          strings.Repeat("a123456789.", 22) + "example.com",
			GarbageCollection: &v1alpha3.GarbageCollection{},
		}, shoot, Secrets{}},
		"credentials":         {v1alpha3.RegistryCache{Upstream: upstream}, shoot, Secrets{Credentials: credentials}},
		"ecr":                 {v1alpha3.RegistryCache{Upstream: "123456789012.dkr.ecr.eu-central-1.amazonaws.com"}, shoot, Secrets{AccessKey: accessKey}},
		"ca-bundle":           {v1alpha3.RegistryCache{Upstream: upstream}, shoot, Secrets{CABundle: caBundle}},
		"proxy":               {v1alpha3.RegistryCache{Upstream: upstream, Proxy: proxy}, shoot, Secrets{}},
		"tls":                 {v1alpha3.RegistryCache{Upstream: upstream, HTTP: tls}, shoot, Secrets{Certificate: certificate}},
		"high-availability":   {v1alpha3.RegistryCache{Upstream: upstream, HighAvailability: &v1alpha3.HighAvailability{Enabled: true}}, shoot, Secrets{}},
		"service-name-suffix": {v1alpha3.RegistryCache{Upstream: upstream, ServiceNameSuffix: ptr.To("hub")}, shoot, Secrets{}},
		"autoscaler":          {v1alpha3.RegistryCache{Upstream: upstream}, withAutoscaler, Secrets{}},
		"switched-off": {v1alpha3.RegistryCache{
			Upstream: upstream, Proxy: &v1alpha3.Proxy{NoProxy: ptr.To("a")}, HTTP: &v1alpha3.HTTP{}, HighAvailability: &v1alpha3.HighAvailability{},
		}, shoot, Secrets{}},
		"everything": {v1alpha3.RegistryCache{
			Upstream:          "[2001:db8::1]:5000",
			Volume:            &v1alpha3.Volume{Size: ptr.To(resource.MustParse("1Gi")), StorageClassName: ptr.To("fast")},
			GarbageCollection: &v1alpha3.GarbageCollection{TTL: metav1.Duration{Duration: 90 * time.Minute}},
			Proxy:             proxy, HTTP: tls, HighAvailability: &v1alpha3.HighAvailability{Enabled: true}, ServiceNameSuffix: ptr.To("all"),
		}, withAutoscaler, Secrets{Credentials: credentials, CABundle: caBundle, Certificate: certificate}},
	}
}

// render sets the defaults of the cache and returns all its objects. Without http the cache serves
// plain HTTP here, so that only the renderings with TLS need a certificate.
func (r rendering) render(t *testing.T) []client.Object {
	t.Helper()
	config := &v1alpha3.RegistryConfig{Caches: []v1alpha3.RegistryCache{*r.cache.DeepCopy()}}
	if config.Caches[0].HTTP == nil {
		config.Caches[0].HTTP = &v1alpha3.HTTP{}
	}
	v1alpha3.SetDefaults(config)
	if errs := v1alpha3.Validate(config); len(errs) > 0 {
		t.Fatalf("invalid config: %v", errs)
	}
	objects, err := Objects(config.Caches[0], r.identity(), r.shoot, r.secrets)
	if err != nil {
		t.Fatal(err)
	}
	services, err := Services(config.Caches[0], r.identity(), r.shoot)
	if err != nil {
		t.Fatal(err)
	}
	return append(services, objects...)
}

func (r rendering) identity() v1alpha3.Identity {
	return v1alpha3.Identify([]v1alpha3.RegistryCache{r.cache}, nil)[0]
}

// get returns the only object of type T.
func get[T client.Object](t *testing.T, objects []client.Object) T {
	t.Helper()
	for _, object := range objects {
		if found, ok := object.(T); ok {
			return found
		}
	}
	var none T
	t.Fatalf("no %T among the objects", none)
	return none
}

func (r rendering) statefulSet(t *testing.T) *appsv1.StatefulSet {
	t.Helper()
	return get[*appsv1.StatefulSet](t, r.render(t))
}

func TestObjectsGolden(t *testing.T) {
	for name, rendering := range renderings() {
		t.Run(name, func(t *testing.T) { golden.Compare(t, name+".yaml", serialize(t, rendering.render(t))) })
	}
}

// serialize returns the objects as YAML. Before the Secret with the configuration of the registry,
// it writes this configuration in readable form.
func serialize(t *testing.T, rendered []client.Object) []byte {
	t.Helper()
	var out bytes.Buffer
	for _, object := range rendered {
		if secret, ok := object.(*corev1.Secret); ok && secret.Data[configFile] != nil {
			out.WriteString("# " + configFile + "\n")
			for line := range strings.Lines(string(secret.Data[configFile])) {
				out.WriteString("# " + line)
			}
		}
		out.Write(golden.Encode(t, kubernetes.ShootScheme, object))
		out.WriteString("---\n")
	}
	return out.Bytes()
}

// TestObjectsDecodeStrictly checks that gardener-resource-manager can read the objects: its scheme
// knows all kinds and fields. All objects must be in kube-system with the labels of their cache.
func TestObjectsDecodeStrictly(t *testing.T) {
	strict := serializer.NewCodecFactory(kubernetes.ShootScheme, serializer.EnableStrict).UniversalDeserializer()
	for name, rendering := range renderings() {
		t.Run(name, func(t *testing.T) {
			names := map[string]bool{}
			for _, object := range rendering.render(t) {
				content := golden.Encode(t, kubernetes.ShootScheme, object)
				decoded, err := runtime.Decode(strict, content)
				if err != nil {
					t.Fatalf("%T: %v", object, err)
				}
				if again := golden.Encode(t, kubernetes.ShootScheme, decoded.(client.Object)); !bytes.Equal(content, again) {
					t.Errorf("%T changes in a round trip:\n%s", object, again)
				}
				if object.GetNamespace() != metav1.NamespaceSystem {
					t.Errorf("%T is in namespace %q", object, object.GetNamespace())
				}
				want := rendering.identity().HostLabel
				if service, ok := object.(*corev1.Service); ok && service.Spec.ClusterIP == corev1.ClusterIPNone {
					want = "" // the label marks the Service that nodes pull from
				}
				if got := object.GetLabels()[v1alpha3.LabelUpstreamHost]; got != want {
					t.Errorf("%T has the label %q, want %q", object, got, want)
				}
				key := object.GetObjectKind().GroupVersionKind().String() + object.GetName()
				if names[key] {
					t.Errorf("duplicate %s", key)
				}
				names[key] = true
			}
		})
	}
}

func TestObjectsRejectsIncompleteInput(t *testing.T) {
	complete := renderings()["docker.io"]
	config := &v1alpha3.RegistryConfig{Caches: []v1alpha3.RegistryCache{complete.cache}}
	v1alpha3.SetDefaults(config)
	secure := config.Caches[0]
	secure.HTTP = &v1alpha3.HTTP{TLS: true}
	if _, err := Objects(secure, complete.identity(), shoot, Secrets{}); err == nil {
		t.Error("no error for a cache with TLS and without a certificate")
	}
	if _, err := Services(config.Caches[0], complete.identity(), Shoot{KubernetesVersion: "latest"}); err == nil || !strings.Contains(err.Error(), `"latest"`) {
		t.Errorf("error for an invalid version = %v", err)
	}
}

// TestUpdateMode: API servers before Kubernetes 1.33 do not resize running pods by default.
func TestUpdateMode(t *testing.T) {
	for version, want := range map[string]vpaautoscalingv1.UpdateMode{
		"": vpaautoscalingv1.UpdateModeRecreate, "1.32.9": vpaautoscalingv1.UpdateModeRecreate,
		"1.33.0": vpaautoscalingv1.UpdateModeInPlaceOrRecreate, "v1.34.1": vpaautoscalingv1.UpdateModeInPlaceOrRecreate,
	} {
		if got := verticalPodAutoscaler(v1alpha3.Identity{}, version).Spec.UpdatePolicy.UpdateMode; *got != want {
			t.Errorf("version %q: %s, want %s", version, *got, want)
		}
	}
}
