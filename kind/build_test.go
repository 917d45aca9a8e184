package kind

import "testing"

// TestWithPlantedBug: only what ships is built with the bug.
func TestWithPlantedBug(t *testing.T) {
	testbed, err := New(Options{Directory: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	all, err := testbed.withPlantedBug(t.TempDir(), Binaries())
	if err != nil {
		t.Fatal(err)
	}
	for _, binary := range all {
		if binary.Overlay != "" {
			t.Errorf("%s is built with %s, want no bug", binary.Name, binary.Overlay)
		}
	}
	testbed.Planted = &PlantedBug{Name: "not-atomic", Overlay: func(string, string) (string, error) { return "not-atomic.json", nil }}
	if all, err = testbed.withPlantedBug(t.TempDir(), Binaries()); err != nil {
		t.Fatal(err)
	}
	built := map[string]bool{}
	for i, binary := range all {
		if built[binary.Name] = binary.Overlay != ""; built[binary.Name] {
			if binary.Overlay != "not-atomic.json" {
				t.Errorf("%s is built with %s", binary.Name, binary.Overlay)
			}
		}
		if Binaries()[i].Overlay != "" {
			t.Error("Binaries() was changed")
		}
	}
	if !built[ImageExtension] || !built[ImageCache] || built[ImageNodeAgent] || built[ImageResourceManager] {
		t.Errorf("built with the bug: %v", built)
	}
}
