//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"time"
)

// background is work that goes on while a scenario looks. It never outlives the scenario.
type background struct {
	cancel context.CancelFunc
	ended  chan struct{}
	err    error
}

// Background starts the work. If nobody joins it, it is canceled at the end of the scenario, and waited for.
func (p *scenarioRun) Background(ctx context.Context, work func(ctx context.Context) error) *background {
	ctx, cancel := context.WithCancel(ctx)
	b := &background{cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(b.ended)
		b.err = work(ctx)
	}()
	p.scenario.Cleanup(b.end)
	return b
}

// Join waits until the work has ended, and fails the scenario if it failed or took longer than the timeout.
func (p *scenarioRun) Join(ctx context.Context, b *background, what string, timeout time.Duration) {
	p.Helper()
	p.Await(ctx, what, timeout, func(context.Context) (bool, string, error) {
		select {
		case <-b.ended:
			return true, "", b.err
		default:
			return false, "still at work", nil
		}
	})
}

// failed returns the error of work that has ended already.
func (b *background) failed() error {
	select {
	case <-b.ended:
		return b.err
	default:
		return nil
	}
}

// end cancels the work and returns when it has ended.
func (b *background) end() {
	b.cancel()
	<-b.ended
}

// reconciled says what is waited for when a reconciliation of the shoot runs in the background.
func reconciled(hosts ...string) string {
	return fmt.Sprintf("gardenlet has reconciled the shoot with caches for %v", hosts)
}

// reconcileTimeout bounds a reconciliation of the shoot in the background.
const reconcileTimeout = 2 * time.Minute
