package charts

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/gardener/gardener/pkg/chartrenderer"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/apimachinery/pkg/version"

	"github.com/gardener-extensions/registry-cache/internal/golden"
)

const namespace = "extension-registry-cache"

// render renders the chart as gardenlet does, with values as gardenlet gives them.
func render(t *testing.T, values map[string]any) []byte {
	t.Helper()
	values["gardener"] = map[string]any{
		"version": "v1.147.1",
		"garden":  map[string]any{"clusterIdentity": "testbed"},
		"seed":    map[string]any{"name": "seed"},
	}
	renderer := chartrenderer.NewWithServerVersion(&version.Info{GitVersion: "v1.36.2"})
	release, err := renderer.RenderEmbeddedFS(files, extensionChart, "registry-cache", namespace, values)
	if err != nil {
		t.Fatal(err)
	}
	return release.Manifest()
}

// decode decodes every object of a manifest. It is strict: an unknown field is an error.
func decode(t *testing.T, manifest []byte) []runtime.Object {
	t.Helper()
	decoder := serializer.NewCodecFactory(kubernetes.SeedScheme, serializer.EnableStrict).UniversalDeserializer()
	documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(manifest)))
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

func TestExtensionChartGolden(t *testing.T) {
	for name, values := range map[string]map[string]any{
		"minimal": {"image": map[string]any{"ref": "registry.test/registry-cache-extension:v1"}},
		"full": {
			"image":        map[string]any{"repository": "registry.test/registry-cache-extension", "tag": "v2"},
			"replicaCount": 2,
			"vpa":          map[string]any{"enabled": true},
			"imageVectorOverwrite": map[string]any{"images": []any{
				map[string]any{"name": "registry-cache", "ref": "registry.test/registry-cache:v2"},
			}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := render(t, values)
			if objects := decode(t, got); len(objects) < 7 {
				t.Errorf("the chart renders to %d objects only", len(objects))
			}
			golden.Compare(t, name+".yaml", got)
		})
	}
}
