//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gardener-extensions/registry-cache/e2e/rig"
	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

// stream pulls new images of an upstream in the background, on one worker after the other, and
// records how long each pull took.
type stream struct {
	*rig.Background
	stop context.CancelFunc
	took []time.Duration
	// images contains the image of each pull, as took contains its time.
	images []rig.Pushed
}

// pullContinuously starts a stream, which pulls until end is called.
func pullContinuously(ctx context.Context, p *rig.Run, host string) *stream {
	workers := p.Workers()
	stopping, stop := context.WithCancel(ctx)
	s := &stream{stop: stop}
	// Calling stop prevents the next pull. A running pull continues, so that its time counts.
	s.Background = p.Background(ctx, func(ctx context.Context) error {
		for i := 0; stopping.Err() == nil; i++ {
			img, err := rig.Push(ctx, p, host)
			if err != nil {
				return err
			}
			took, err := rig.TimedPull(ctx, workers[i%len(workers)], img)
			if err != nil {
				return err
			}
			s.took, s.images = append(s.took, took), append(s.images, img)
		}
		return nil
	})
	p.Scenario.Cleanup(func() { stop(); <-s.Ended })
	return s
}

// end stops the pulls and fails the scenario if one of them failed or took longer than the limit.
func (s *stream) end(p *rig.Run, host string, limit time.Duration) {
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
		p.Fatalf("a pull of %s in the background took %s, want at most %s; all: %s", host, rig.Seconds(longest), limit, fmt.Sprint(s.took))
	}
	p.Evidence("%d pulls of %s in the background, longest %s", len(s.took), rig.Label(host), rig.Seconds(longest))
}

// proveDirect pulls a new image on every worker and proves that the worker itself fetched its image
// from the upstream, within the limit.
func proveDirect(ctx context.Context, p *rig.Run, host string, limit time.Duration) {
	p.Helper()
	longest, blobs := time.Duration(0), 0
	for _, worker := range p.Workers() {
		img := p.Push(ctx, host)
		took := p.TimedPull(ctx, worker, img)
		blobs += p.FetchedOnce(ctx, img, accesslog.AskerNode).ByNodes
		longest = max(longest, took)
		if took > limit {
			p.Fatalf("a direct pull of %s on %s took %s, want at most %s", host, worker.Name(), rig.Seconds(took), limit)
		}
	}
	p.Evidence("%s afterwards: %d blob GETs by nodes, 0 by cache, longest %s", rig.Label(host), blobs, rig.Seconds(longest))
}
