package registrycache_test

import (
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// skaffoldFile is what of skaffold.yaml has to follow the code.
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

// TestSkaffoldWatchesWhatIsBuilt keeps a change from not being noticed, and one of another program from building this one.
func TestSkaffoldWatchesWhatIsBuilt(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("skaffold.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file skaffoldFile
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Build.Artifacts) != 2 {
		t.Fatalf("%d artifacts, want what ships and runs in the testbed: 2", len(file.Build.Artifacts))
	}
	for _, artifact := range file.Build.Artifacts {
		layer := "cmd/" + path.Base(artifact.Image)
		want := slices.Sorted(maps.Keys(mayContain(layer)))
		got := slices.Sorted(slices.Values(artifact.Custom.Dependencies.Paths))
		if !slices.Equal(got, want) {
			t.Errorf("%s watches %s\nwant %s: %s and all that it may import", artifact.Image,
				strings.Join(got, " "), strings.Join(want, " "), layer)
		}
	}
}

// mayContain returns the layers that a program of the layer may be built from, and the files that pin its modules.
func mayContain(layer string) map[string]bool {
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
