package fieldbugs

import (
	"os"
	"testing"

	"github.com/gardener-extensions/registry-cache/internal/golden"
)

// TestPage checks that docs/field-bugs.md matches the catalog and the last results. Run
// `make field-bugs` to generate it with the results of the last run.
func TestPage(t *testing.T) {
	results, err := Measured()
	if err != nil {
		t.Fatal(err)
	}
	if path := os.Getenv("FIELD_BUGS"); path != "" {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		later, err := decode(path, content)
		if err != nil {
			t.Fatal(err)
		}
		results = Merge(results, later...)
		for i := range later {
			if err := Record("measured.json", &later[i]); err != nil {
				t.Fatal(err)
			}
		}
	}
	golden.Compare(t, "../../../docs/field-bugs.md", Page(All(), results))
}
