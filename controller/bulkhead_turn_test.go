package controller

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/go-logr/logr"
)

// newHangingBulkhead has one place, and two shoots that have held up their worker.
func newHangingBulkhead(t *testing.T) (*bulkhead, *shoots, []string) {
	t.Helper()
	s := newShoots()
	b := newBulkhead(s, 1)
	both := numbered("hanging", 2)
	s.setHanging(true, both)
	for _, namespace := range both {
		if err := b.Reconcile(t.Context(), logr.Discard(), inNamespace(namespace)); !errors.Is(err, errHangs) {
			t.Fatalf("error = %v", err)
		}
	}
	return b, s, both
}

// TestWhatWasChangedIsTried before its turn: the error of last time may be the mistake that was mended since. But it needs a
// place, like all that hang.
func TestWhatWasChangedIsTried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, s, both := newHangingBulkhead(t)
		mended := inNamespace(both[1])
		if err := b.Reconcile(t.Context(), logr.Discard(), mended); err == nil || !strings.Contains(err.Error(), "turn of other") {
			t.Fatalf("error = %v, want it to wait for its turn", err)
		}
		mended.Generation++
		ended := make(chan error)
		first := inNamespace(both[0])
		first.Generation++
		go func() { ended <- b.Reconcile(t.Context(), logr.Discard(), first) }()
		synctest.Wait()
		if err := b.Reconcile(t.Context(), logr.Discard(), mended); err == nil || !strings.Contains(err.Error(), "turn of other") {
			t.Errorf("error = %v although the only place is taken", err)
		}
		<-ended
		s.setHanging(false, both[1:])
		if err := b.Reconcile(t.Context(), logr.Discard(), mended); err != nil {
			t.Errorf("error = %v", err)
		}
		if _, unresponsive := b.unresponsive[both[1]]; unresponsive || b.taken != 0 {
			t.Errorf("the shoot that answers counts as unresponsive: %t, places taken: %d", unresponsive, b.taken)
		}
	})
}

// TestForceDeletionHasNoTurn: it is for shoots that do not answer, and waits for none. The shoot does not count any more.
func TestForceDeletionHasNoTurn(t *testing.T) {
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
