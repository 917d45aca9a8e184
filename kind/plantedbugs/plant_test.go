package plantedbugs

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/kindtest"
)

func TestPlant(t *testing.T) {
	testbed, err := kind.New(kind.Options{Directory: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"cleaner-skipped": "", "": "", "no-such-bug": "cleaner-skipped", "hit-as-miss": "in the testbed itself",
	} {
		if err := Plant(testbed, name); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", name, err, want)
		}
	}
}

func TestProveOnAnotherTestbed(t *testing.T) {
	testbed, err := kind.New(kind.Options{Directory: t.TempDir(), Prefix: "other"})
	if err != nil {
		t.Fatal(err)
	}
	if report, err := Prove(t.Context(), testbed, All()); report != nil || err == nil {
		t.Errorf("report %v, error %v", report, err)
	}
}

// TestPlantedOverlay checks that the overlay of a planted bug replaces one file, which exists.
func TestPlantedOverlay(t *testing.T) {
	testbed := kindtest.New(t, kind.Options{})
	if err := Plant(testbed, "not-atomic"); err != nil {
		t.Fatal(err)
	}
	path, err := testbed.Planted.Overlay(testbed.Root, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
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
