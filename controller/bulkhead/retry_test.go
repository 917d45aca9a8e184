package bulkhead

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/go-logr/logr"
)

// newHangingBulkhead returns a bulkhead with one slot and two unresponsive shoots.
func newHangingBulkhead(t *testing.T) (*bulkhead, *fakeActuator, []string) {
	t.Helper()
	s := newShoots()
	b := New(s, 1).(*bulkhead)
	both := numbered("hanging", 2)
	s.setHanging(true, both)
	for _, namespace := range both {
		if err := b.Reconcile(t.Context(), logr.Discard(), inNamespace(namespace)); !errors.Is(err, errHangs) {
			t.Fatalf("error = %v", err)
		}
	}
	return b, s, both
}

// TestChangedShootIsTriedEarly checks that a shoot is tried early if its Extension has changed,
// because the change may fix the cause. The attempt still needs a slot.
func TestChangedShootIsTriedEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, s, both := newHangingBulkhead(t)
		fixed := inNamespace(both[1])
		if err := b.Reconcile(t.Context(), logr.Discard(), fixed); err == nil || !strings.Contains(err.Error(), "other unresponsive") {
			t.Fatalf("error = %v, want it to wait", err)
		}
		fixed.Generation++
		ended := make(chan error)
		first := inNamespace(both[0])
		first.Generation++
		go func() { ended <- b.Reconcile(t.Context(), logr.Discard(), first) }()
		synctest.Wait()
		if err := b.Reconcile(t.Context(), logr.Discard(), fixed); err == nil || !strings.Contains(err.Error(), "other unresponsive") {
			t.Errorf("error = %v although the only slot is in use", err)
		}
		<-ended
		s.setHanging(false, both[1:])
		if err := b.Reconcile(t.Context(), logr.Discard(), fixed); err != nil {
			t.Errorf("error = %v", err)
		}
		if _, unresponsive := b.unresponsive[both[1]]; unresponsive || b.inUse != 0 {
			t.Errorf("the responsive shoot counts as unresponsive: %t, slots in use: %d", unresponsive, b.inUse)
		}
	})
}

// TestForceDeletionIsNotDelayed checks that ForceDelete needs no slot and removes the shoot from
// the bulkhead.
func TestForceDeletionIsNotDelayed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, s, both := newHangingBulkhead(t)
		s.setHanging(false, both[1:])
		if err := b.ForceDelete(t.Context(), logr.Discard(), inNamespace(both[1])); err != nil {
			t.Errorf("error = %v", err)
		}
		if _, there := b.unresponsive[both[1]]; there || len(b.unresponsive) != 1 {
			t.Errorf("%v count as unresponsive", b.unresponsive)
		}
	})
}
