package kind

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/gardener-extensions/registry-cache/kind/proof"
)

// TestPlanted: what ships is built with the bug, and nothing else.
func TestPlanted(t *testing.T) {
	testbed, err := New(Options{Directory: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	all, err := testbed.planted(t.TempDir(), Binaries())
	if err != nil {
		t.Fatal(err)
	}
	for _, binary := range all {
		if binary.Overlay != "" {
			t.Errorf("%s is built with %s, without any bug", binary.Name, binary.Overlay)
		}
	}
	if err := proof.Plant(testbed, "not-atomic"); err != nil {
		t.Fatal(err)
	}
	if all, err = testbed.planted(t.TempDir(), Binaries()); err != nil {
		t.Fatal(err)
	}
	with := map[string]bool{}
	for i, binary := range all {
		if with[binary.Name] = binary.Overlay != ""; with[binary.Name] {
			checkOverlay(t, binary.Overlay)
		}
		if Binaries()[i].Overlay != "" {
			t.Error("the list of binaries itself was changed")
		}
	}
	if !with[ImageExtension] || !with[ImageCache] || with[ImageNodeAgent] || with[ImageResourceManager] {
		t.Errorf("built with the bug: %v", with)
	}
}

func checkOverlay(t *testing.T, path string) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var overlay struct{ Replace map[string]string }
	if err := json.Unmarshal(content, &overlay); err != nil || len(overlay.Replace) != 1 {
		t.Errorf("overlay %s, error %v", content, err)
	}
	for original := range overlay.Replace {
		if _, err := os.Stat(original); err != nil {
			t.Error(err)
		}
	}
}

// TestPlantedBug: the testbed knows which bug is in it until an Up without one has ended.
func TestPlantedBug(t *testing.T) {
	testbed, err := New(Options{Directory: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(string(testbed.State), 0o755); err != nil {
		t.Fatal(err)
	}
	want := func(name string) {
		t.Helper()
		if got, err := testbed.PlantedBug(); got != name || err != nil {
			t.Errorf("%q is planted, error %v; want %q", got, err, name)
		}
	}
	step := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	want("")
	step(testbed.ForgetPlanted(t.Context())) // nothing to forget
	step(proof.Plant(testbed, "volume-lost"))
	step(testbed.NotePlanted())
	step(testbed.ForgetPlanted(t.Context()))
	want("volume-lost")
	step(proof.Plant(testbed, ""))
	step(testbed.NotePlanted())
	want("volume-lost")
	step(testbed.ForgetPlanted(t.Context()))
	want("")
}
