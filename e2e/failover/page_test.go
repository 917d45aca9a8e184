package failover

import (
	"os"
	"reflect"
	"testing"

	"github.com/gardener-extensions/registry-cache/internal/golden"
)

const measured = "measured.json"

// TestPage checks that docs/failover.md shows the recorded results. `make failover-page` adds those
// of the last run.
func TestPage(t *testing.T) {
	if path := os.Getenv("FAILOVER"); path != "" {
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
	got := Merge(before, Result{Failure: "a", Containerd: "v2.3.4", MidwayDirect: 20, Midway: 30}, Result{Failure: "a", Containerd: "v2.0.5", Took: 3})
	want := []Result{
		{Failure: "a", Containerd: "v2.3.4", Direct: 1, Took: 2, MidwayDirect: 20, Midway: 30}, {Failure: "a", Containerd: "v2.0.5", Took: 3},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v", got)
	}
}
