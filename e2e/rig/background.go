//go:build e2e

package rig

import (
	"context"
	"fmt"
	"time"
)

// Background is work in parallel with the steps of a scenario. It never outlives the scenario.
type Background struct {
	Cancel context.CancelFunc
	Ended  chan struct{}
	Err    error
}

// Background starts the work. When the scenario ends, the work is canceled, and the scenario waits
// until the work has returned.
func (p *Run) Background(ctx context.Context, work func(ctx context.Context) error) *Background {
	ctx, cancel := context.WithCancel(ctx)
	b := &Background{Cancel: cancel, Ended: make(chan struct{})}
	go func() {
		defer close(b.Ended)
		b.Err = work(ctx)
	}()
	p.Scenario.Cleanup(b.End)
	return b
}

// Join waits until the work has ended, and fails the scenario after an error or the timeout.
func (p *Run) Join(ctx context.Context, b *Background, what string, timeout time.Duration) {
	p.Helper()
	p.Await(ctx, what, timeout, func(context.Context) (bool, string, error) {
		select {
		case <-b.Ended:
			return true, "", b.Err
		default:
			return false, "still running", nil
		}
	})
}

// Failed returns the error of the work if it has ended, and nil while it runs.
func (b *Background) Failed() error {
	select {
	case <-b.Ended:
		return b.Err
	default:
		return nil
	}
}

// End cancels the work and waits until it has ended.
func (b *Background) End() {
	b.Cancel()
	<-b.Ended
}

// Reconciled returns the text with which Join describes a reconciliation of the shoot.
func Reconciled(hosts ...string) string {
	return fmt.Sprintf("gardenlet has reconciled the shoot with caches for %v", hosts)
}

// ReconcileTimeout bounds a reconciliation of the shoot in the background.
const ReconcileTimeout = 2 * time.Minute
