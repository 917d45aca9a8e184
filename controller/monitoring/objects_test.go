package monitoring

import (
	"bytes"
	"testing"

	"github.com/gardener/gardener/pkg/client/kubernetes"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/internal/golden"
)

const namespace = "shoot--local--local"

// config returns the two caches that the series in testdata belong to.
func config() *v1alpha3.RegistryConfig {
	return &v1alpha3.RegistryConfig{Caches: []v1alpha3.RegistryCache{
		{Upstream: "docker.io"},
		{Upstream: "registry.example:5000", ServiceNameSuffix: ptr.To("example")},
	}}
}

func rendered(t *testing.T) []client.Object {
	t.Helper()
	return Objects(namespace, config(), v1alpha3.Identify(config().Caches, nil))
}

func get[T client.Object](t *testing.T) T {
	t.Helper()
	var none T
	for _, object := range rendered(t) {
		if found, ok := object.(T); ok {
			return found
		}
	}
	t.Fatalf("no %T among the objects", none)
	return none
}

func TestObjectsGolden(t *testing.T) {
	var out bytes.Buffer
	for _, object := range rendered(t) {
		if object.GetNamespace() != namespace {
			t.Errorf("%T is in namespace %q", object, object.GetNamespace())
		}
		out.Write(golden.Encode(t, kubernetes.SeedScheme, object))
		out.WriteString("---\n")
	}
	golden.Compare(t, "objects.yaml", out.Bytes())
}

func TestObjectsDecodeStrictly(t *testing.T) {
	strict := serializer.NewCodecFactory(kubernetes.SeedScheme, serializer.EnableStrict).UniversalDeserializer()
	for _, object := range rendered(t) {
		if _, err := runtime.Decode(strict, golden.Encode(t, kubernetes.SeedScheme, object)); err != nil {
			t.Errorf("%T: %v", object, err)
		}
	}
}

// TestReferences checks that References returns the kinds and names of Objects.
func TestReferences(t *testing.T) {
	objects, references := rendered(t), References(namespace)
	for i, object := range objects {
		kind, err := apiutil.GVKForObject(object, kubernetes.SeedScheme)
		if err != nil {
			t.Fatal(err)
		}
		if i >= len(references) || references[i].GetName() != object.GetName() || references[i].GetObjectKind().GroupVersionKind() != kind {
			t.Errorf("no reference to %s %s: %v", kind, object.GetName(), references)
		}
	}
}
