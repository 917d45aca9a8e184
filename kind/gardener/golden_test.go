package gardener

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/gardener/gardener/pkg/client/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// golden compares the objects, as they are applied, with a file of testdata.
func golden(t *testing.T, name string, objects []client.Object) {
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
	goldenText(t, name, got.Bytes())
}

func goldenText(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("differs from %s\nto accept: UPDATE_GOLDEN=1 go test ./kind/gardener\ngot:\n%s", file, got)
	}
}
