package failover

import (
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
	svg, err := Plot(all)
	if err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "../../../docs/failover.md", Page(all))
	golden.Compare(t, "../../../docs/images/failover.svg", string(svg))
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
	if _, err := Plot(got); err != nil {
		t.Error(err)
	}
}
