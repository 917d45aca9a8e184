package kind

import (
	"os"
	"testing"
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
	testbed.Planted = planted("not-atomic")
	if all, err = testbed.planted(t.TempDir(), Binaries()); err != nil {
		t.Fatal(err)
	}
	with := map[string]bool{}
	for i, binary := range all {
		if with[binary.Name] = binary.Overlay != ""; with[binary.Name] {
			if binary.Overlay != "not-atomic.json" {
				t.Errorf("%s is built with %s", binary.Name, binary.Overlay)
			}
		}
		if Binaries()[i].Overlay != "" {
			t.Error("the list of binaries itself was changed")
		}
	}
	if !with[ImageExtension] || !with[ImageCache] || with[ImageNodeAgent] || with[ImageResourceManager] {
		t.Errorf("built with the bug: %v", with)
	}
}

func planted(name string) *PlantedBug {
	return &PlantedBug{Name: name, Overlay: func(string, string) (string, error) { return name + ".json", nil }}
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
	testbed.Planted = planted("volume-lost")
	step(testbed.NotePlanted())
	step(testbed.ForgetPlanted(t.Context()))
	want("volume-lost")
	testbed.Planted = nil
	step(testbed.NotePlanted())
	want("volume-lost")
	step(testbed.ForgetPlanted(t.Context()))
	want("")
}
