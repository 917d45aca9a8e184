package registries

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/internal/golden"
	"github.com/gardener-extensions/registry-cache/internal/registryprofile"
)

const measured = "measured.json"

// TestPage checks that docs/registries.md shows the recorded results. `make registries-page` adds
// those of the last run.
func TestPage(t *testing.T) {
	for _, path := range strings.Fields(os.Getenv("REGISTRIES")) {
		later, err := Read(path)
		if err == nil {
			err = Record(measured, later...)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	all, err := Read(measured)
	if err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "../../../docs/registries.md", Page(all))
}

func TestResults(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sub", "registries.json")
	for _, one := range []Result{{Registry: "quay", Cold: 9}, {Registry: "ghes", Cold: 1, Warm: 2, Outage: 3}, {Registry: "quay", Cold: 1.234, Renewed: 2}} {
		if err := Record(path, one); err != nil {
			t.Fatal(err)
		}
	}
	got, err := Read(path)
	if want := []Result{{Registry: "ghes", Cold: 1, Warm: 2, Outage: 3}, {Registry: "quay", Cold: 1.234, Renewed: 2}}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
	page := Page(got)
	for name, cells := range map[string]string{
		"quay": "| 1.23 | not measured | 2.00 | not measured |", "ghes": "| 1.00 | 2.00 | no token | 3.00 |",
		"acr": "| not measured | not measured | not measured | not measured |",
	} {
		row := page[strings.Index(page, "| `"+name+"` |"):]
		row, _, _ = strings.Cut(row, "\n")
		if !strings.Contains(row, cells) {
			t.Errorf("want %s in %s", cells, row)
		}
	}
}

// TestSellsTokens: exactly the profile of Amazon ECR needs the API that sells tokens.
func TestSellsTokens(t *testing.T) {
	for name, profile := range registryprofile.Profiles {
		if SellsTokens(profile) != (name == "ecr") {
			t.Errorf("%s sells tokens: %t", name, SellsTokens(profile))
		}
	}
}
