package charts

import (
	"bytes"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestValuesSchema: an invalid value is rejected with its path, not ignored.
func TestValuesSchema(t *testing.T) {
	for name, test := range map[string]struct{ values, want string }{
		"unknown":          {"replicas: 2", "replicas"},
		"unknown deeper":   {"controllers: {concurrentSync: 1}", "concurrentSync"},
		"kind":             {"replicaCount: two", "replicaCount"},
		"log level":        {"logLevel: verbose", "logLevel"},
		"log format":       {"logFormat: xml", "logFormat"},
		"no reconciles":    {"controllers: {extension: {concurrentSyncs: 0}}", "concurrentSyncs"},
		"slow heartbeat":   {"controllers: {heartbeat: {renewIntervalSeconds: 121}}", "renewIntervalSeconds"},
		"period":           {"controllers: {healthCheckPeriod: 2 minutes}", "healthCheckPeriod"},
		"port":             {"metrics: {port: 70000}", "port"},
		"probes":           {"livenessProbe: {failureThreshold: 0}", "failureThreshold"},
		"requests":         {"clientConnection: {qps: 0}", "qps"},
		"quantity":         {"resources: {requests: {memory: 1GB}}", "memory"},
		"vector as string": {"imageVectorOverwrite: 'images: []'", "imageVectorOverwrite"},
		"update mode":      {"vpa: {updatePolicy: {updateMode: Never}}", "updateMode"},
		"image of nothing": {"imageVectorOverwrite: {images: [{name: registry-cache}]}", "images"},
		"no image":         {"image: {tag: ''}", "image.tag or image.ref is required"},
	} {
		t.Run(name, func(t *testing.T) {
			values := map[string]any{}
			if err := yaml.UnmarshalStrict([]byte(test.values), &values); err != nil {
				t.Fatal(err)
			}
			if _, set := values["image"]; !set {
				values["image"] = map[string]any{"ref": "registry.test/extension:v1"}
			}
			if _, err := render(t, extensionChart, values); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error = %v, want one that names %q", err, test.want)
			}
		})
	}
}

// TestVerticalPodAutoscalerFollowsSeed: the value of the chart takes precedence over the setting of
// the seed. Without either, there is no autoscaler.
func TestVerticalPodAutoscalerFollowsSeed(t *testing.T) {
	seed := func(settings map[string]any) map[string]any {
		return map[string]any{"seed": map[string]any{"spec": map[string]any{"settings": settings}}}
	}
	on := seed(map[string]any{"verticalPodAutoscaler": map[string]any{"enabled": true}})
	off := seed(map[string]any{"verticalPodAutoscaler": map[string]any{"enabled": false}})
	for name, test := range map[string]struct {
		vpa, gardener map[string]any
		want          bool
	}{
		"seed on":             {nil, on, true},
		"seed off":            {nil, off, false},
		"seed without":        {nil, seed(nil), false},
		"no seed":             {nil, nil, false},
		"on, seed off":        {map[string]any{"enabled": true}, off, true},
		"off, seed on":        {map[string]any{"enabled": false}, on, false},
		"null means the seed": {map[string]any{"enabled": nil}, on, true},
	} {
		t.Run(name, func(t *testing.T) {
			values := map[string]any{"image": map[string]any{"ref": "a/b:c"}, "vpa": test.vpa, "gardener": test.gardener}
			for key, value := range values {
				if m, ok := value.(map[string]any); ok && m == nil {
					delete(values, key)
				}
			}
			manifest, err := render(t, extensionChart, values)
			if err != nil {
				t.Fatal(err)
			}
			if got := bytes.Contains(manifest, []byte("kind: VerticalPodAutoscaler")); got != test.want {
				t.Errorf("has a VerticalPodAutoscaler: %t, want %t", got, test.want)
			}
		})
	}
}
