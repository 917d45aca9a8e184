package report

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/internal/golden"
	"github.com/gardener-extensions/registry-cache/internal/registryprofile"
)

// TestPages checks that the pages show the recorded results. `make failover-page` and `make
// registries-page` add those of the last run.
func TestPages(t *testing.T) {
	t.Run("failover", func(t *testing.T) {
		golden.Compare(t, "../../../docs/failover.md", failoverPage(recorded[Failover](t, "failover.json", "FAILOVER")))
	})
	t.Run("registries", func(t *testing.T) {
		golden.Compare(t, "../../../docs/registries.md", registriesPage(recorded[Registry](t, "registries.json", "REGISTRIES")))
	})
}

// recorded adds the results in the files that the environment variable lists to the file at path,
// and returns all results.
func recorded[R result[R]](t *testing.T, path, variable string) []R {
	t.Helper()
	all, err := read[R](path)
	for _, later := range strings.Fields(os.Getenv(variable)) {
		var results []R
		if err == nil {
			results, err = read[R](later)
		}
		for _, one := range results {
			all = one.addTo(all)
		}
		if err == nil {
			err = write(path, all)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestLongestMidway compares the bound for running pulls in README.md and docs/differences.md with
// the recorded results.
func TestLongestMidway(t *testing.T) {
	longest := 0.0
	for _, r := range recorded[Failover](t, "failover.json", "") {
		longest = max(longest, r.Midway-r.MidwayDirect)
	}
	for _, path := range []string{"../../README.md", "../../docs/differences.md"} {
		text, err := os.ReadFile(path)
		if want := fmt.Sprintf("up to [%.0f s longer]", math.Ceil(longest)); err != nil || !strings.Contains(strings.Join(strings.Fields(string(text)), " "), want) {
			t.Errorf("%s does not contain %q, which was measured (%v)", path, want, err)
		}
	}
}

func TestFailover(t *testing.T) {
	got := record(t, Failover{Failure: "a", Containerd: "v2.3.4", Direct: 1, Took: 2}, Failover{Failure: "a", Containerd: "v2.3.4", Old: 90},
		Failover{Failure: "a", Containerd: "v2.3.4", MidwayDirect: 20, Midway: 30}, Failover{Failure: "a", Containerd: "v2.0.5", Took: 3})
	want := []Failover{
		{Failure: "a", Containerd: "v2.3.4", Direct: 1, Took: 2, MidwayDirect: 20, Midway: 30, Old: 90}, {Failure: "a", Containerd: "v2.0.5", Took: 3},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v", got)
	}
	page := failoverPage(got)
	for _, row := range []string{
		"| a | 2.00 s | 1.00 s | 3.00 s | not measured | more than 90 s |",
		"| a | 30.00 s | 20.00 s | not measured | not measured |\n",
	} {
		if !strings.Contains(page, row) {
			t.Errorf("want %s in %s", row, page)
		}
	}
}

func TestRegistries(t *testing.T) {
	got := record(t, Registry{Registry: "quay", Cold: 9}, Registry{Registry: "ghes", Cold: 1, Warm: 2, Outage: 3}, Registry{Registry: "quay", Cold: 1.234, Renewed: 2})
	if want := []Registry{{Registry: "ghes", Cold: 1, Warm: 2, Outage: 3}, {Registry: "quay", Cold: 1.234, Renewed: 2}}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v", got)
	}
	page := registriesPage(got)
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

// record records the results one after another in a new file, as scenarios do, and returns the
// results that a page would show.
func record[R result[R]](t *testing.T, later ...R) []R {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sub", "results.json")
	for _, one := range later {
		if err := Record(path, one); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("RESULTS", path)
	return recorded[R](t, filepath.Join(t.TempDir(), "page.json"), "RESULTS")
}

// TestSellsTokens: only clients of Amazon ECR request tokens from an API.
func TestSellsTokens(t *testing.T) {
	for name, profile := range registryprofile.Profiles {
		if SellsTokens(profile) != (name == "ecr") {
			t.Errorf("%s sells tokens: %t", name, SellsTokens(profile))
		}
	}
}
