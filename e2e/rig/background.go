//go:build e2e

package rig

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

// Background is work that runs beside the steps of a scenario, but never outlives the scenario.
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

// Failed returns the error of work that has ended, and nil for work that still runs.
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

// Stream pulls new images of an upstream in the background, on one worker after the other, and
// records how long each pull took.
type Stream struct {
	*Background
	stop context.CancelFunc
	took []time.Duration
	// Images are the pulled images.
	Images []Pushed
}

// PullContinuously starts a Stream, which pulls until End is called.
func PullContinuously(ctx context.Context, p *Run, host string) *Stream {
	workers := p.Workers()
	stopping, stop := context.WithCancel(ctx)
	s := &Stream{stop: stop}
	// Calling stop prevents the next pull. A running pull continues, so that its time counts.
	s.Background = p.Background(ctx, func(ctx context.Context) error {
		for i := 0; stopping.Err() == nil; i++ {
			img, err := push(ctx, p, host)
			if err != nil {
				return err
			}
			took, err := TimedPull(ctx, workers[i%len(workers)], img)
			if err != nil {
				return err
			}
			s.took, s.Images = append(s.took, took), append(s.Images, img)
		}
		return nil
	})
	p.Scenario.Cleanup(func() { stop(); <-s.Ended })
	return s
}

// End stops the pulls and fails the scenario if one of them failed or took longer than the limit.
func (s *Stream) End(p *Run, host string, limit time.Duration) {
	p.Helper()
	s.stop()
	<-s.Ended
	if s.Err != nil && !errors.Is(s.Err, context.Canceled) {
		p.Fatalf("a pull of %s in the background failed: %v", host, s.Err)
	}
	if len(s.took) == 0 {
		p.Fatalf("nothing was pulled from %s in the background", host)
	}
	longest := slices.Max(s.took)
	if longest > limit {
		p.Fatalf("a pull of %s in the background took %s, want at most %s; all: %s", host, Seconds(longest), limit, fmt.Sprint(s.took))
	}
	p.Evidence("%d pulls of %s in the background, longest %s", len(s.took), Label(host), Seconds(longest))
}

// ProveDirect pulls a new image on every worker and proves that the worker fetched it from the
// upstream itself, within the limit.
func (p *Run) ProveDirect(ctx context.Context, host string, limit time.Duration) {
	p.Helper()
	longest, blobs := time.Duration(0), 0
	for _, worker := range p.Workers() {
		img := p.Push(ctx, host)
		took := p.TimedPull(ctx, worker, img)
		blobs += p.FetchedOnce(ctx, img, accesslog.AskerNode).ByNodes
		longest = max(longest, took)
		if took > limit {
			p.Fatalf("a direct pull of %s on %s took %s, want at most %s", host, worker.Name(), Seconds(took), limit)
		}
	}
	p.Evidence("%s afterwards: %d blob GETs by nodes, 0 by cache, longest %s", Label(host), blobs, Seconds(longest))
}
