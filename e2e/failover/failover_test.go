package failover

import (
	"fmt"
	"math"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/internal/golden"
)

const measured = "measured.json"

// TestPage checks that docs/failover.md shows the recorded results. `make failover-page` adds those
// of the last run.
func TestPage(t *testing.T) {
	for _, path := range strings.Fields(os.Getenv("FAILOVER")) {
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
	golden.Compare(t, "../../../docs/failover.md", Page(all))
}

// TestLongestMidway compares what README and limits say of running pulls with the recorded results.
func TestLongestMidway(t *testing.T) {
	all, err := Read(measured)
	if err != nil {
		t.Fatal(err)
	}
	longest := 0.0
	for _, r := range all {
		longest = max(longest, r.Midway-r.MidwayDirect)
	}
	for _, path := range []string{"../../README.md", "../../docs/differences.md"} {
		text, err := os.ReadFile(path)
		if want := fmt.Sprintf("up to [%.0f s longer]", math.Ceil(longest)); err != nil || !strings.Contains(strings.Join(strings.Fields(string(text)), " "), want) {
			t.Errorf("%s does not say %q, which was measured (%v)", path, want, err)
		}
	}
}

func TestMerge(t *testing.T) {
	before := []Result{{Failure: "a", Containerd: "v2.3.4", Direct: 1, Took: 2}}
	got := Merge(Merge(before, Result{Failure: "a", Containerd: "v2.3.4", Old: 90}), Result{Failure: "a", Containerd: "v2.3.4", MidwayDirect: 20, Midway: 30}, Result{Failure: "a", Containerd: "v2.0.5", Took: 3})
	want := []Result{
		{Failure: "a", Containerd: "v2.3.4", Direct: 1, Took: 2, MidwayDirect: 20, Midway: 30, Old: 90}, {Failure: "a", Containerd: "v2.0.5", Took: 3},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v", got)
	}
	if page := Page(got); !strings.Contains(page, "| a | 2.00 s | 1.00 s | 3.00 s | not measured | more than 90 s |") {
		t.Errorf("got %s", page)
	}
	if page := Page(got); !strings.Contains(page, "| a | 30.00 s | 20.00 s | not measured | not measured |") {
		t.Errorf("got %s", page)
	}
}
