package gardener

import (
	"strings"
	"testing"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/chartrenderer"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/version"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// TestExtensionObjectsAreWhatDeployWrites applies the objects to one seed and looks there for what Deploy brings.
func TestExtensionObjectsAreWhatDeployWrites(t *testing.T) {
	extension := Extension{
		Name:         "sample",
		Registration: &gardencorev1beta1.ControllerRegistration{ObjectMeta: metav1.ObjectMeta{Name: "sample-registration"}},
		Chart:        chart,
		Values:       map[string]any{"image": map[string]any{"ref": "test/sample:1"}},
	}
	renderer := chartrenderer.NewWithServerVersion(&version.Info{GitVersion: "v1.36.2"})
	objects, err := extension.Objects(t.Context(), renderer)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := kindsOf(objects), "Namespace extension-sample, Secret , ManagedResource sample"; got != want {
		t.Errorf("objects %s, want %s", got, want)
	}
	seed := fake.NewClientBuilder().WithScheme(kubernetes.SeedScheme).Build()
	for _, object := range objects {
		if object.GetResourceVersion() != "" {
			t.Errorf("%s %s has a resourceVersion: it could not be applied over another one", object.GetKind(), object.GetName())
		}
		if err := seed.Create(t.Context(), object.DeepCopy()); err != nil {
			t.Fatal(err)
		}
	}
	manifest := deployedManifest(t, seed, client.ObjectKey{Namespace: GardenNamespace, Name: "sample"})
	for _, want := range []string{"image: test/sample:1", "namespace: extension-sample"} {
		if !strings.Contains(manifest, want) {
			t.Errorf("the release lacks %q:\n%s", want, manifest)
		}
	}

	again, err := extension.Objects(t.Context(), renderer)
	if err != nil || again[1].GetName() != objects[1].GetName() {
		t.Errorf("the same chart and values give another Secret: %v", err)
	}
	extension.Values = map[string]any{"image": map[string]any{"ref": "test/sample:2"}}
	other, err := extension.Objects(t.Context(), renderer)
	if err != nil || other[1].GetName() == objects[1].GetName() {
		t.Errorf("another image gives the same Secret, which would not be applied: %v", err)
	}
}

func kindsOf(objects []*unstructured.Unstructured) string {
	var kinds []string
	for _, object := range objects {
		name := object.GetName()
		if object.GetKind() == "Secret" {
			name = "" // a hash
		}
		kinds = append(kinds, object.GetKind()+" "+name)
	}
	return strings.Join(kinds, ", ")
}
