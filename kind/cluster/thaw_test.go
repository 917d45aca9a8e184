package cluster

import (
	"os"
	"path/filepath"
	"testing"
)

// TestThaw checks that only frozen cgroups of the container change.
func TestThaw(t *testing.T) {
	root := t.TempDir()
	states := map[string][2]string{ // before and after
		"docker/abc/pods/one":    {"FROZEN\n", "THAWED"},
		"docker/abc/pods/two":    {"THAWED\n", "THAWED\n"},
		"docker/other/pods/one":  {"FROZEN\n", "FROZEN\n"},
		"docker/abc/pods/moving": {"FREEZING\n", "THAWED"},
	}
	for name, state := range states {
		folder := filepath.Join(root, name)
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, "freezer.state"), []byte(state[0]), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	thaw(root, "")
	if state, err := os.ReadFile(filepath.Join(root, "docker/abc/pods/one", "freezer.state")); err != nil || string(state) != "FROZEN\n" {
		t.Fatalf("without a container it is %q: %v", state, err)
	}
	thaw(root, "abc")
	thaw(filepath.Join(root, "nowhere"), "abc")
	for name, state := range states {
		got, err := os.ReadFile(filepath.Join(root, name, "freezer.state"))
		if err != nil || string(got) != state[1] {
			t.Errorf("%s is %q, want %q: %v", name, got, state[1], err)
		}
	}
}
