package controller

import (
	"context"
	"fmt"
	"testing"

	"github.com/go-logr/logr"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

// TestInterruptionBeforeRemoval interrupts a growth at every point in every way, and then removes
// the cache or disables the extension. The result must be the same as after an uninterrupted
// growth.
func TestInterruptionBeforeRemoval(t *testing.T) {
	for name, remove := range map[string]func(*landscape) error{
		"removed": func(l *landscape) error {
			l.configure(t, func(c *v1alpha3.RegistryConfig) { c.Caches = c.Caches[1:] })
			return l.reconcile(t)
		},
		"disabled": func(l *landscape) error { return l.delete(t) },
	} {
		t.Run(name, func(t *testing.T) {
			l, w := newRunningLandscape(t, sized("20Gi"))
			l.patient()
			l.reconciled(t)
			requests := w.requests
			if err := remove(l); err != nil {
				t.Fatal(err)
			}
			want := l.summary(t)
			for _, at := range points(requests) {
				for how, arm := range breakAt(at, requests[at-1]) {
					what := fmt.Sprintf("%s at request %d, %s", how, at, requests[at-1])
					l, w := newRunningLandscape(t, sized("20Gi"))
					ctx, cancel := context.WithCancel(t.Context())
					arm(w, cancel)
					_ = l.actuator.Reconcile(ctx, logr.Discard(), l.extension(t)) // a poll repeats a lost request
					cancel()
					w.fail = nil
					l.patient()
					if err := remove(l); err != nil {
						t.Errorf("%s: the removal fails: %v", what, err)
					} else if got := l.summary(t); got != want {
						t.Errorf("%s: the result is\n%s\nwant\n%s", what, got, want)
					}
				}
			}
		})
	}
}
