//go:build e2e

package rig

import (
	"context"
	"fmt"
	"time"
)

// background is work that goes on while a scenario looks. It never outlives the scenario.
type Background struct {
	Cancel context.CancelFunc
	Ended  chan struct{}
	Err    error
}

// Background starts the work. If nobody joins it, it is canceled at the end of the scenario, and waited for.
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

// Join waits until the work has ended, and fails the scenario if it failed or took longer than the timeout.
func (p *Run) Join(ctx context.Context, b *Background, what string, timeout time.Duration) {
	p.Helper()
	p.Await(ctx, what, timeout, func(context.Context) (bool, string, error) {
		select {
		case <-b.Ended:
			return true, "", b.Err
		default:
			return false, "still at work", nil
		}
	})
}

// failed returns the error of work that has ended already.
func (b *Background) Failed() error {
	select {
	case <-b.Ended:
		return b.Err
	default:
		return nil
	}
}

// end cancels the work and returns when it has ended.
func (b *Background) End() {
	b.Cancel()
	<-b.Ended
}

// reconciled says what is waited for when a reconciliation of the shoot runs in the background.
func Reconciled(hosts ...string) string {
	return fmt.Sprintf("gardenlet has reconciled the shoot with caches for %v", hosts)
}

// reconcileTimeout bounds a reconciliation of the shoot in the background.
const ReconcileTimeout = 2 * time.Minute
