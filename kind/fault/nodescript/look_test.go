package nodescript

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestLook checks that `look` lists only active faults, and leaves other faults as they are: one
// that has ended, and one that is being deleted.
func TestLook(t *testing.T) {
	n := newNode(t)
	look := func() []string { return n.listed(t, Look()) }
	if got := look(); len(got) != 0 {
		t.Errorf("faults of a new node: %v", got)
	}
	f := must(t, "node/worker", "kubelet-stop", nil)
	for id, unit := range map[string]string{"f1": "kubelet.service", "f2": "other.service"} {
		if err := n.begin(t, f.Begin(id, noon), StopUnit, unit); err != nil {
			t.Fatal(err)
		}
	}
	// The unit of f2 runs, so f2 is not active.
	if err := os.Remove(filepath.Join(n.directory, "stopped-other.service")); err != nil {
		t.Fatal(err)
	}
	// f3 is being deleted: its folder is incomplete.
	n.write(t, "faults/f3/description", "{}\n", 0o644)
	before := n.calls(t)
	if got := look(); !slices.Equal(got, []string{"f1"}) {
		t.Errorf("listed %v", got)
	}
	for _, id := range []string{"f1", "f2", "f3"} {
		if _, err := os.Stat(filepath.Join(n.directory, "faults", id)); err != nil {
			t.Errorf("look ended %s: %v", id, err)
		}
	}
	if after := n.calls(t); after != before+"systemctl is-active --quiet kubelet.service\nsystemctl is-active --quiet other.service\n" {
		t.Errorf("calls:\n%s\nbefore:\n%s", after, before)
	}
}
