package charts

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/gardener/gardener/pkg/chartrenderer"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	kubeyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/apimachinery/pkg/version"
	"sigs.k8s.io/yaml"

	"github.com/gardener-extensions/registry-cache/internal/helmchart"
)

const (
	namespace      = "extension-registry-cache"
	valuesSuffix   = ".values.yaml"
	extensionCases = "testdata/" + extensionChart
)

// chartFolders returns the folders of all charts, including nested ones.
func chartFolders(t *testing.T) []string {
	t.Helper()
	var folders []string
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Name() == "Chart.yaml" {
			folders = append(folders, filepath.Dir(path))
		}
		return err
	})
	if err != nil || len(folders) == 0 {
		t.Fatalf("found %d charts, %v", len(folders), err)
	}
	return folders
}

// valuesFiles returns the files with test values of a chart.
func valuesFiles(t *testing.T, chart string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", chart, "*"+valuesSuffix))
	if err != nil || len(files) == 0 {
		t.Fatalf("chart %s: no values to test it with in testdata/%s, %v", chart, chart, err)
	}
	return files
}

func readValues(t *testing.T, file string) map[string]any {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]any{}
	if err := yaml.UnmarshalStrict(content, &values); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return values
}

// render renders a chart as gardenlet does: templates learn only the server version of the cluster.
func render(t *testing.T, chart string, values map[string]any) ([]byte, error) {
	t.Helper()
	archive, err := helmchart.Archive(os.DirFS(chart), filepath.Base(chart))
	if err != nil {
		t.Fatal(err)
	}
	renderer := chartrenderer.NewWithServerVersion(&version.Info{GitVersion: "v1.36.4"})
	release, err := renderer.RenderArchive(archive, "registry-cache", namespace, values)
	if err != nil {
		return nil, err
	}
	return release.Manifest(), nil
}

// decode strictly decodes every object of a manifest: an unknown field is an error.
func decode(t *testing.T, manifest []byte) []runtime.Object {
	t.Helper()
	decoder := serializer.NewCodecFactory(kubernetes.SeedScheme, serializer.EnableStrict).UniversalDeserializer()
	documents := kubeyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(manifest)))
	var objects []runtime.Object
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(bytes.TrimSpace(document)) == 0 {
			continue
		}
		object, _, err := decoder.Decode(document, nil, nil)
		if err != nil {
			t.Fatalf("%v:\n%s", err, document)
		}
		objects = append(objects, object)
	}
}
