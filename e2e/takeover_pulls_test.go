//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/gardener-extensions/registry-cache/e2e/rig"
	"github.com/gardener-extensions/registry-cache/kind/cluster"
)

const (
	// pullInterval is the time between two pulls of one kind on one worker, from start to start.
	pullInterval = time.Second
	// watchedBytes is the size of the layer of each pulled image. It is so small that only the number
	// of requests determines how long a pull takes.
	watchedBytes = 64 << 10
)

// watchedPull is one pull of watchedPulls.
type watchedPull struct {
	Image, Worker string
	// Cached means that another worker has pulled the image before.
	Cached bool
	Start  time.Time
	Took   time.Duration
	Err    error
}

func (w watchedPull) String() string {
	kind := "new image"
	if w.Cached {
		kind = "image of the cache"
	}
	return fmt.Sprintf("%s on %s at %s (%s): %s, %v", w.Image, w.Worker, w.Start.Format(time.TimeOnly), kind, rig.Seconds(w.Took), w.Err)
}

// watchedPulls are pulls in the background: each second, each worker pulls a new image and one that
// another worker has pulled before. Unlike a stream, they continue after a failed pull, and pulls
// of one kind never wait for those of the other.
type watchedPulls struct {
	work *rig.Background
	stop context.CancelFunc

	mu   sync.Mutex
	done []watchedPull
}

// watchPulls starts the pulls. They end when end is called or the scenario ends.
func watchPulls(ctx context.Context, p *rig.Run, hosts ...string) *watchedPulls {
	p.Helper()
	workers := p.Workers()
	if len(workers) < 2 {
		p.Fatalf("an image of the cache needs two workers, the shoot has %d", len(workers))
	}
	stopping, stop := context.WithCancel(ctx)
	w := &watchedPulls{stop: stop}
	w.work = p.Background(ctx, func(ctx context.Context) error {
		var all sync.WaitGroup
		failures := make(chan error, len(hosts)*len(workers))
		for _, host := range hosts {
			for i, worker := range workers {
				known := make(chan rig.Pushed, 100) // images that this worker has pulled, for the next one
				next := workers[(i+1)%len(workers)]
				all.Go(func() {
					failures <- every(stopping, func() error {
						img, err := rig.PushLayers(ctx, p, host, 1, watchedBytes)
						if err != nil {
							return err
						}
						if w.record(ctx, worker, img, false) == nil {
							select {
							case known <- img:
							default: // the other worker is far behind
							}
						}
						return nil
					})
				})
				all.Go(func() {
					_ = every(stopping, func() error {
						select {
						case img := <-known:
							_ = w.record(ctx, next, img, true)
						default:
						}
						return nil
					})
				})
			}
		}
		all.Wait()
		close(failures)
		var failed error
		for err := range failures {
			failed = errors.Join(failed, err)
		}
		return failed
	})
	p.Scenario.Cleanup(func() { stop(); <-w.work.Ended })
	return w
}

// every calls do every second until ctx ends or do fails.
func every(ctx context.Context, do func() error) error {
	tick := time.NewTicker(pullInterval)
	defer tick.Stop()
	for {
		if err := do(); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// record pulls the image and returns the error of the pull. A pull that ctx ends is not recorded.
func (w *watchedPulls) record(ctx context.Context, worker *cluster.Node, img rig.Pushed, cached bool) error {
	start := time.Now()
	took, err := rig.TimedPull(ctx, worker, img)
	if ctx.Err() != nil {
		return err
	}
	if err != nil {
		took = time.Since(start)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.done = append(w.done, watchedPull{Image: img.Reference(), Worker: worker.Name(), Cached: cached, Start: start, Took: took, Err: err})
	return err
}

// counts returns how many pulls of new images and of cached images have ended.
func (w *watchedPulls) counts() (fresh, cached int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, pull := range w.done {
		if pull.Cached {
			cached++
		} else {
			fresh++
		}
	}
	return fresh, cached
}

// awaitMore waits until the given number of further pulls of each kind has ended.
func (w *watchedPulls) awaitMore(ctx context.Context, p *rig.Run, more int) {
	p.Helper()
	fresh, cached := w.counts()
	p.Await(ctx, fmt.Sprintf("%d more pulls of each kind have ended", more), 2*rig.PullTimeout, func(context.Context) (bool, string, error) {
		freshNow, cachedNow := w.counts()
		return freshNow >= fresh+more && cachedNow >= cached+more, fmt.Sprintf("%d and %d have", freshNow-fresh, cachedNow-cached), w.work.Failed()
	})
}

// slowest fails the scenario if a pull has failed, and returns the time of the slowest one.
func (w *watchedPulls) slowest(p *rig.Run) time.Duration {
	p.Helper()
	p.Check(w.work.Failed())
	w.mu.Lock()
	defer w.mu.Unlock()
	slowest := watchedPull{}
	for _, pull := range w.done {
		if pull.Err != nil {
			p.Errorf("a pull failed: %s", pull)
		}
		if pull.Took > slowest.Took {
			slowest = pull
		}
	}
	if p.Failed() {
		p.FailNow()
	}
	p.Logf("the slowest of %d pulls: %s", len(w.done), slowest)
	return slowest.Took
}

// end stops the pulls, and fails the scenario if one has failed or taken longer than the limit.
func (w *watchedPulls) end(p *rig.Run, limit time.Duration) {
	p.Helper()
	w.stop()
	<-w.work.Ended
	slowest := w.slowest(p)
	fresh, cached := w.counts()
	if slowest > limit {
		p.Fatalf("a pull took %s, want at most %s; see the log for which one", rig.Seconds(slowest), rig.Seconds(limit))
	}
	p.Evidence("%d pulls of new images and %d of images of the cache, none failed, slowest %s (allowed %s)",
		fresh, cached, rig.Seconds(slowest), rig.Seconds(limit))
}
