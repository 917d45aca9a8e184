package gardener

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/gardener/gardener/pkg/client/kubernetes"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/gardener-extensions/registry-cache/internal/golden"
)

// manifestNames are the names of the manifests in the order in which Deploy applies them.
var manifestNames = []string{"apiserver", "apiservices", "landscape", "managers"}

func renderManifests(t *testing.T) map[string][]client.Object {
	t.Helper()
	plane := ControlPlane{Image: func(name string) string { return "registry.test/" + name + ":1" }, KubernetesVersion: "v1.36.4"}
	values, err := plane.values(&corev1.Secret{Data: map[string][]byte{corev1.TLSCertKey: []byte("certificate")}})
	if err != nil {
		t.Fatal(err)
	}
	if len(values["EmptyChart"].(string)) < 100 {
		t.Errorf("the chart is %q", values["EmptyChart"])
	}
	values["EmptyChart"], values["Architecture"] = "Y2hhcnQ=", "amd64" // do not depend on the compression and the machine
	manifests := map[string][]client.Object{}
	for _, name := range manifestNames {
		if manifests[name], err = readManifest(name, values); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	return manifests
}

// TestManifestsOfTheControlPlane decodes each object strictly, so an unknown field fails.
func TestManifestsOfTheControlPlane(t *testing.T) {
	decoder := serializer.NewCodecFactory(kubernetes.GardenScheme, serializer.EnableStrict).UniversalDeserializer()
	for name, objects := range renderManifests(t) {
		for _, object := range objects {
			encoded, err := json.Marshal(object)
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := decoder.Decode(encoded, nil, nil); err != nil {
				t.Errorf("%s: %s: %v", name, object.GetName(), err)
			}
		}
	}
}

// TestControlPlaneObjects compares what Deploy applies with a golden file.
func TestControlPlaneObjects(t *testing.T) {
	manifests := renderManifests(t)
	var text strings.Builder
	for _, name := range manifestNames {
		for _, object := range manifests[name] {
			document, err := yaml.Marshal(object)
			if err != nil {
				t.Fatal(err)
			}
			text.WriteString("---\n" + string(document))
		}
	}
	golden.Compare(t, "controlplane.yaml", text.String())
}

// TestLandscape: the Seed in the landscape agrees with the Seed of a testbed without a garden, and
// the landscape registers every extension that a Seed and a Shoot of kind need.
func TestLandscape(t *testing.T) {
	var kinds []string
	for _, object := range renderManifests(t)["landscape"] {
		content, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		var fields struct {
			Spec struct {
				Networks  struct{ Pods, Services string }
				Provider  struct{ Type, Region string }
				Resources []struct{ Kind, Type string }
			}
		}
		if err := json.Unmarshal(content, &fields); err != nil {
			continue // a Secret or a Namespace has no such fields
		}
		switch object.GetObjectKind().GroupVersionKind().Kind {
		case "Seed":
			want := NewSeed().Spec
			if got := fields.Spec; got.Networks.Pods != want.Networks.Pods || got.Networks.Services != want.Networks.Services ||
				got.Provider.Type != want.Provider.Type || got.Provider.Region != want.Provider.Region || object.GetName() != SeedName {
				t.Errorf("seed %s: %+v, want %+v", object.GetName(), got, want)
			}
		case "ControllerRegistration":
			for _, resource := range fields.Spec.Resources {
				kinds = append(kinds, resource.Kind)
			}
		}
	}
	want := []string{"Infrastructure", "ControlPlane", "Worker", "Network", "DNSRecord", "OperatingSystemConfig"}
	if !slices.Equal(kinds, want) {
		t.Errorf("registered %q, want %q", kinds, want)
	}
}
