package gardener

import (
	"bytes"
	"testing"

	"github.com/gardener/gardener/pkg/client/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/gardener-extensions/registry-cache/internal/golden"
)

// compareObjects compares the objects, as they are applied, with a golden file.
func compareObjects(t *testing.T, name string, objects []client.Object) {
	t.Helper()
	var got bytes.Buffer
	for _, object := range objects {
		configuration, err := applyConfiguration(object, kubernetes.SeedScheme)
		if err != nil {
			t.Fatal(err)
		}
		data, err := yaml.Marshal(configuration.Object)
		if err != nil {
			t.Fatal(err)
		}
		got.WriteString("---\n")
		got.Write(data)
	}
	golden.Compare(t, name, got.Bytes())
}
