package proof

import (
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/kind"
)

func TestPlant(t *testing.T) {
	testbed, err := kind.New(kind.Options{Directory: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"cleaner-skipped": "", "": "", "no-such-bug": "cleaner-skipped", "hit-as-miss": "one of the testbed's own",
	} {
		if err := Plant(testbed, name); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", name, err, want)
		}
	}
}

func TestProveScenariosOfAnotherTestbed(t *testing.T) {
	testbed, err := kind.New(kind.Options{Directory: t.TempDir(), Prefix: "other"})
	if err != nil {
		t.Fatal(err)
	}
	if report, err := Prove(t.Context(), testbed, All()); report != nil || err == nil {
		t.Errorf("report %v, error %v", report, err)
	}
}
