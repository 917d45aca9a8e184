package cleaner

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"sigs.k8s.io/yaml"
)

const image = "registry.example/registry-cache:v1"

func TestDaemonSetGolden(t *testing.T) {
	for name, task := range map[string]Task{
		"two-upstreams": {Upstreams: []string{"beta.upstream.test:5000", "alpha.upstream.test"}},
		"all":           {All: true, Upstreams: []string{"alpha.upstream.test"}},
	} {
		t.Run(name, func(t *testing.T) {
			set, err := DaemonSet(task, image)
			if err != nil {
				t.Fatal(err)
			}
			got, err := yaml.Marshal(set)
			if err != nil {
				t.Fatal(err)
			}
			golden := filepath.Join("testdata", name+".yaml")
			if os.Getenv("UPDATE_GOLDEN") != "" {
				if err := os.WriteFile(golden, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("the DaemonSet differs from %s; to accept: UPDATE_GOLDEN=1 go test ./controller/cleaner\n%s", golden, got)
			}
		})
	}
}

func TestSameTaskSamePods(t *testing.T) {
	upstreams := []string{"b.test", "a.test"}
	one := arguments(Task{Upstreams: upstreams})
	slices.Reverse(upstreams)
	if other := arguments(Task{Upstreams: upstreams}); !slices.Equal(one, other) {
		t.Errorf("the order of upstreams changes the pods: %v, %v", one, other)
	}
}

func TestDaemonSetRefusesToDoNothing(t *testing.T) {
	if _, err := DaemonSet(Task{}, image); err == nil {
		t.Error("no error for a task without upstreams")
	}
	if _, err := DaemonSet(Task{All: true}, ""); err == nil {
		t.Error("no error for an empty image")
	}
}
