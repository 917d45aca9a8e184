package objects

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"
)

// Encode returns the object as YAML. It sets apiVersion and kind from the scheme. The test fails if
// the scheme does not know the kind.
func Encode(t testing.TB, scheme *runtime.Scheme, object client.Object) []byte {
	t.Helper()
	kind, err := apiutil.GVKForObject(object, scheme)
	if err != nil {
		t.Fatal(err)
	}
	object.GetObjectKind().SetGroupVersionKind(kind)
	content, err := yaml.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return content
}
