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

// stream pulls ever new images of an upstream on all workers in turn, while something else goes on, and keeps the times.
type Stream struct {
	stop context.CancelFunc
	done chan struct{}

	took []time.Duration
	// images are those that were pulled.
	Images []Pushed
	err    error
}

// pullContinuously starts to pull; it goes on until end is called.
func PullContinuously(ctx context.Context, p *Run, host string) *Stream {
	s := &Stream{done: make(chan struct{})}
	workers := p.Workers()
	stopping, stop := context.WithCancel(ctx)
	s.stop = stop
	p.Scenario.Cleanup(func() { stop(); <-s.done })
	go func() {
		defer close(s.done)
		// A pull that has begun is finished, so that its time counts: only the next one is not begun any more.
		for i := 0; stopping.Err() == nil && s.err == nil; i++ {
			var img Pushed
			if img, s.err = push(ctx, p, host); s.err != nil {
				return
			}
			var took time.Duration
			if took, s.err = TimedPull(ctx, workers[i%len(workers)], img); s.err == nil {
				s.took, s.Images = append(s.took, took), append(s.Images, img)
			}
		}
	}()
	return s
}

// end stops the pulls and proves that all of them succeeded and none took longer than the limit.
func (s *Stream) End(p *Run, host string, limit time.Duration) {
	p.Helper()
	s.stop()
	<-s.done
	if s.err != nil && !errors.Is(s.err, context.Canceled) {
		p.Fatalf("a pull of %s failed in the meantime: %v", host, s.err)
	}
	if len(s.took) == 0 {
		p.Fatalf("nothing was pulled from %s in the meantime", host)
	}
	longest := slices.Max(s.took)
	if longest > limit {
		p.Fatalf("a pull of %s took %s in the meantime, want at most %s; all: %s", host, Seconds(longest), limit, fmt.Sprint(s.took))
	}
	p.Evidence("%d pulls of %s meanwhile, longest %s", len(s.took), Label(host), Seconds(longest))
}

// ProveDirect pulls a new image on every worker and proves that the node fetched it from the upstream by itself, in time.
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
