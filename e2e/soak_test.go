//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/gardener-extensions/registry-cache/e2e/rig"
	"github.com/gardener-extensions/registry-cache/kind/cluster"
)

const (
	soakDefault  = 30 * time.Minute
	soakInterval = 5 * time.Second
	// soakExtra bounds how much longer than a direct pull 99 of 100 pulls may take.
	soakExtra = 3 * time.Second
	// A failure lasts 10 to 60 s, and begins 30 to 90 s after the end of the previous one.
	soakLasts, soakLastsMore, soakRests, soakRestsMore = 10 * time.Second, 50 * time.Second, 30 * time.Second, time.Minute
)

// soak makes caches fail at random while each worker pulls. SOAK sets the duration, and SEED
// repeats a sequence of failures.
func soak() rig.Scenario {
	return rig.New("soak", cachesThatFail(), rig.Prove("no pull fails, and hardly any pull is slow", proveSoak)).Within(6 * time.Hour)
}

func proveSoak(ctx context.Context, p *rig.Run) {
	lasts, seed := soakDefault, rand.Uint64()
	var err error
	if text := os.Getenv("SOAK"); text != "" {
		lasts, err = time.ParseDuration(text)
		p.Check(err)
	}
	if text := os.Getenv("SEED"); text != "" {
		seed, err = strconv.ParseUint(text, 10, 64)
		p.Check(err)
	}
	awaitCachesServe(ctx, p)
	until := time.Now().Add(lasts)
	var (
		mu       sync.Mutex
		extra    []time.Duration
		repeated int
	)
	pulled := func(more time.Duration, again bool) {
		mu.Lock()
		defer mu.Unlock()
		extra = append(extra, more)
		if again {
			repeated++
		}
	}
	var pullers []*rig.Background
	for _, worker := range p.Workers() {
		pullers = append(pullers, p.Background(ctx, func(ctx context.Context) error {
			return pullUntil(ctx, p, worker, until, pulled)
		}))
	}
	begun := failAtRandom(ctx, p, rand.New(rand.NewPCG(seed, 0)), until)
	for _, puller := range pullers {
		<-puller.Ended
		p.Check(puller.Err)
	}
	slices.Sort(extra)
	p.Evidence("seed %d: %d failures, %d pulls, %d of them repeated, p50 %s, p99 %s, slowest %s more than direct", seed, begun,
		len(extra), repeated, rig.Seconds(percentile(extra, 50)), rig.Seconds(percentile(extra, 99)), rig.Seconds(percentile(extra, 100)))
	if slow := percentile(extra, 99); slow > soakExtra {
		p.Fatalf("with seed %d, one in a hundred pulls takes %s longer than a direct one, want %s", seed, rig.Seconds(slow), soakExtra)
	}
}

// failAtRandom makes caches fail one after another, and returns the number of failures. No node is
// lost, because each worker has to pull.
func failAtRandom(ctx context.Context, p *rig.Run, random *rand.Rand, until time.Time) (begun int) {
	p.Helper()
	all := slices.DeleteFunc(failures(), func(f cacheFailure) bool { return f.name == nodeGone().name })
	for {
		rests := soakRests + time.Duration(random.Int64N(int64(soakRestsMore)))
		stays := soakLasts + time.Duration(random.Int64N(int64(soakLastsMore)))
		f := all[random.IntN(len(all))]
		if time.Now().Add(rests + stays).After(until) {
			return begun
		}
		elapse(ctx, p, time.Now().Add(rests))
		f.begin(ctx, p)
		elapse(ctx, p, time.Now().Add(stays))
		f.end(ctx, p)
		begun++
	}
}

// pullUntil alternately pulls new images of alpha and beta, each after a direct pull. For each it
// calls pulled with the extra time, and whether the pull was repeated.
func pullUntil(
	ctx context.Context, p *rig.Run, worker *cluster.Node, until time.Time, pulled func(extra time.Duration, repeated bool),
) error {
	for i := 0; time.Now().Before(until); i++ {
		next := time.Now().Add(soakInterval)
		direct, _, err := pushAndPull(ctx, p, worker, rig.Gamma, failoverLayers, failoverLayerBytes)
		if err != nil {
			return fmt.Errorf("direct pull on %s: %w", worker.Name(), err)
		}
		took, repeated, err := pushAndPull(ctx, p, worker, []string{rig.Alpha, rig.Beta}[i%2], failoverLayers, failoverLayerBytes)
		if err != nil {
			return fmt.Errorf("pull on %s: %w", worker.Name(), err)
		}
		pulled(took-direct, repeated)
		select {
		case <-time.After(time.Until(next)):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// pushAndPull pushes a new image and returns how long the worker takes to pull it. As the kubelet
// does, it repeats a failed pull, but only once. The result then includes both pulls.
func pushAndPull(
	ctx context.Context, p *rig.Run, worker *cluster.Node, host string, layers int, bytes int64,
) (took time.Duration, repeated bool, err error) {
	img, err := rig.PushLayers(ctx, p, host, layers, bytes)
	if err != nil {
		return 0, false, err
	}
	start := time.Now()
	took, err = rig.TimedPull(ctx, worker, img)
	if err == nil || ctx.Err() != nil {
		return took, false, err
	}
	_, err = rig.TimedPull(ctx, worker, img)
	return time.Since(start), true, err
}

// percentile returns the value that the given percentage of the sorted values does not exceed.
func percentile(sorted []time.Duration, percent int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)*percent/100, len(sorted)-1)]
}
