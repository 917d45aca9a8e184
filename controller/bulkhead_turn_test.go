package controller

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/go-logr/logr"
)

// TestWhatWasChangedIsTried: the error of last time may be the mistake that was mended since. Nothing else of the shoots that
// hang may take its place, and the only one is taken.
func TestWhatWasChangedIsTried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShoots()
		b := newBulkhead(s, 1)
		both := numbered("hanging", 2)
		s.setHanging(true, both)
		for _, namespace := range both {
			if err := b.Reconcile(t.Context(), logr.Discard(), inNamespace(namespace)); !errors.Is(err, errHangs) {
				t.Fatalf("error = %v", err)
			}
		}
		ended := make(chan error)
		go func() { ended <- b.Reconcile(t.Context(), logr.Discard(), inNamespace(both[0])) }()
		synctest.Wait()
		s.setHanging(false, both[1:])
		mended := inNamespace(both[1])
		mended.Generation++
		if err := b.Reconcile(t.Context(), logr.Discard(), mended); err != nil {
			t.Errorf("error = %v", err)
		}
		<-ended
		if _, unresponsive := b.unresponsive[both[1]]; unresponsive || b.taken != 0 {
			t.Errorf("the shoot that answers counts as unresponsive: %t, places taken: %d", unresponsive, b.taken)
		}
	})
}

// TestForceDeletionHasNoTurn: it is for shoots that do not answer, and waits for none.
func TestForceDeletionHasNoTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShoots()
		b := newBulkhead(s, 1)
		both := numbered("hanging", 2)
		s.setHanging(true, both)
		for _, namespace := range both {
			_ = b.Reconcile(t.Context(), logr.Discard(), inNamespace(namespace))
		}
		ended := make(chan error)
		go func() { ended <- b.Reconcile(t.Context(), logr.Discard(), inNamespace(both[0])) }()
		synctest.Wait()
		s.setHanging(false, both[1:])
		if err := b.ForceDelete(t.Context(), logr.Discard(), inNamespace(both[1])); err != nil {
			t.Errorf("error = %v", err)
		}
		<-ended
	})
}
