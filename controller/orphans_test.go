package controller

import (
	"context"
	"fmt"
	"testing"

	"github.com/go-logr/logr"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

// TestInterruptionBeforeRemoval breaks a growth at every point, in every way, and then the cache is removed, or the
// extension disabled. What comes out is the same as after a growth that was not broken.
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
					_ = l.actuator.Reconcile(ctx, logr.Discard(), l.extension(t)) // a lost request of a poll is made again
					cancel()
					w.fail = nil
					l.patient()
					if err := remove(l); err != nil {
						t.Errorf("%s: then it fails: %v", what, err)
					} else if got := l.summary(t); got != want {
						t.Errorf("%s: what comes out is\n%s\nwant\n%s", what, got, want)
					}
				}
			}
		})
	}
}
