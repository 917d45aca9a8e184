package house

import (
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// skaffoldFile is the part of skaffold.yaml that must match the code.
type skaffoldFile struct {
	Build struct {
		Artifacts []struct {
			Image  string `json:"image"`
			Custom struct {
				Dependencies struct {
					Paths []string `json:"paths"`
				} `json:"dependencies"`
			} `json:"custom"`
		} `json:"artifacts"`
	} `json:"build"`
}

// TestSkaffoldWatchesSources checks that Skaffold watches exactly the sources of a program.
func TestSkaffoldWatchesSources(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(root(t), "skaffold.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var file skaffoldFile
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Build.Artifacts) != 2 {
		t.Fatalf("%d artifacts, want 2: extension and cache", len(file.Build.Artifacts))
	}
	tree, err := load(os.DirFS(root(t)))
	if err != nil {
		t.Fatal(err)
	}
	layers := tree.layers()
	for _, artifact := range file.Build.Artifacts {
		layer := "cmd/" + path.Base(artifact.Image)
		want := slices.Sorted(maps.Keys(sourcesOf(layer, layers)))
		got := slices.Sorted(slices.Values(artifact.Custom.Dependencies.Paths))
		if !slices.Equal(got, want) {
			t.Errorf("%s watches %s\nwant %s: %s and all it may import", artifact.Image,
				strings.Join(got, " "), strings.Join(want, " "), layer)
		}
	}
}

// sourcesOf returns a program's layer, all layers that it may import, and the files of its modules.
func sourcesOf(layer string, layers map[string][]string) map[string]bool {
	all := map[string]bool{"go.mod": true, "go.sum": true}
	for open := []string{layer}; len(open) > 0; {
		next := open[0]
		open = open[1:]
		if !all[next] {
			all[next] = true
			open = append(open, layers[next]...)
		}
	}
	return all
}
