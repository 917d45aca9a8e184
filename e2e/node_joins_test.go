//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"regexp"
	"time"

	nodeagentconfigv1alpha1 "github.com/gardener/gardener/pkg/apis/config/nodeagent/v1alpha1"
	"github.com/gardener/gardener/pkg/utils/kubernetes/health"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/e2e/rig"
	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
)

// nodeJoins proves that a new machine is ready about as soon as without caches, that its pulls
// succeed meanwhile, and that it pulls through the caches afterwards.
func nodeJoins() rig.Scenario {
	const slower, configuredWithin = 20 * time.Second, 20 * time.Second
	var without time.Duration
	return rig.New("node-joins",
		rig.Prove("without caches, a new machine in place of a lost one is ready", func(ctx context.Context, p *rig.Run) {
			p.Check(rig.UndoLeftovers(ctx, p))
			p.Reconcile(ctx)
			p.AwaitMirrors(ctx)
			without = rejoin(ctx, p).ready
			p.Evidence("without caches: ready after %s", rig.Seconds(without))
		}),

		rig.Prove("with caches a new machine is ready about as soon, no pull fails or is slow, and it gets its mirrors", func(ctx context.Context, p *rig.Run) {
			rig.Cached(rig.Alpha, rig.Beta)(ctx, p)
			with, start := rejoin(ctx, p), time.Now()
			switch {
			case with.ready > without+slower:
				p.Fatalf("the machine is ready after %s, without caches after %s, want at most %s more", rig.Seconds(with.ready), rig.Seconds(without), slower)
			case with.failure != nil:
				p.Fatalf("a pull fails while the machine joins: %v", with.failure)
			case with.pulls == 0 || with.slowest > rig.MaxPull:
				p.Fatalf("%d pulls meanwhile, the slowest took %s, want some, and at most %s", with.pulls, rig.Seconds(with.slowest), rig.MaxPull)
			}
			p.AwaitMirrors(ctx, rig.Alpha, rig.Beta)
			if took := time.Since(start); took > configuredWithin {
				p.Fatalf("the machine has its mirrors %s after it is ready, want at most %s", rig.Seconds(took), configuredWithin)
			}
			p.Evidence("with caches: ready after %s, %d pulls meanwhile, slowest %s", rig.Seconds(with.ready), with.pulls, rig.Seconds(with.slowest))
		}),

		rig.Prove("the new machine pulls through the cache", func(ctx context.Context, p *rig.Run) {
			start := time.Now()
			p.AwaitCaches(ctx, rig.Alpha, rig.Beta)
			awaitUpstreams(ctx, p, rig.Alpha)
			p.Evidence("after the join: %s", cachedWithin(ctx, p, rig.Alpha, start, restartedWithin))
		}),
	)
}

// containerdRestarts matches the errors of pulls if containerd does not run, stops during the pull,
// or has just started: gardener-node-agent restarts containerd when it changes containerd's
// configuration.
var containerdRestarts = regexp.MustCompile(`containerd\.sock: connect:|error reading from server: EOF|server is not initialized yet`)

// joined is the result of rejoin.
type joined struct {
	// ready is the time until the Node was ready and gardener-node-agent had applied the config.
	ready time.Duration
	// pulls is the number of pulls that succeeded meanwhile. failure is the last error of a pull while
	// containerd ran. slowest is the time of the slowest pull, failed ones included.
	pulls   int
	failure error
	slowest time.Duration
}

// rejoin removes the second worker and makes a new machine join in its place. As soon as its Node
// exists, the machine pulls new images of alpha.
func rejoin(ctx context.Context, p *rig.Run) (j joined) {
	p.Helper()
	worker := p.Worker(1)
	p.Break(ctx, "node/"+worker.Name(), spec.Loss)
	start := time.Now()
	join := p.Background(ctx, func(ctx context.Context) error {
		if err := rig.ClearFaults(ctx, p); err != nil {
			return err
		}
		err := rig.Await(ctx, worker.Name()+" is ready and has its configuration", 2*time.Minute, func(ctx context.Context) (bool, string, error) {
			node, err := nodeOf(ctx, p, worker.Name())
			if err == nil {
				err = health.CheckNode(node)
			}
			applied := node.Annotations[nodeagentconfigv1alpha1.AnnotationKeyChecksumAppliedOperatingSystemConfig]
			return err == nil && applied != "", fmt.Sprintf("%v, configuration: %q", err, applied), nil
		})
		j.ready = time.Since(start)
		return err
	})
	img := p.Push(ctx, rig.Alpha)
	for {
		select {
		case <-join.Ended:
			p.Check(join.Err)
			return j
		case <-time.After(300 * time.Millisecond):
		}
		// Until the Node exists, the testbed deletes the machine's images.
		if _, err := nodeOf(ctx, p, worker.Name()); err != nil {
			continue
		}
		began := time.Now()
		_, err := rig.TimedPull(ctx, worker, img)
		j.slowest = max(j.slowest, time.Since(began))
		switch {
		case err == nil:
			j.pulls++
			img = p.Push(ctx, rig.Alpha)
		case !containerdRestarts.MatchString(err.Error()):
			j.failure = err
		}
	}
}

func nodeOf(ctx context.Context, p *rig.Run, name string) (*corev1.Node, error) {
	node := &corev1.Node{}
	err := p.Session.Shoot.Get(ctx, client.ObjectKey{Name: name}, node)
	return node, err
}
