package fieldbugs

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	corev1 "k8s.io/api/core/v1"

	nodeagentconfigv1alpha1 "github.com/gardener/gardener/pkg/apis/config/nodeagent/v1alpha1"

	"github.com/gardener-extensions/registry-cache/kind/cluster"
)

func nodeJoins() Bug {
	const slower, longest = 20 * time.Second, 5 * time.Second
	return Bug{
		ID: "s20", Slug: "node-joins", Title: "a machine is lost, and a new one joins",
		Reports: []string{"gardener-extension-registry-cache#68", "gardener-extension-registry-cache#444"},
		Symptom: "A new node becomes ready only after many minutes: its first pulls wait for a cache that it cannot reach yet.",
		Fault:   "node/worker2 loss",
		Expectation: "A new machine is ready at most 20 s later than without caches. Its pulls succeed within 5 s while " +
			"containerd runs. After the join they use the cache.",
		Bound: 5 * time.Minute,
		Reproduce: func(ctx context.Context, r *Rig) error {
			if _, err := r.Testbed(ctx, "shoot", "disable"); err != nil {
				return err
			}
			without, err := r.rejoin(ctx, func(address string) bool { return address == "" })
			if err != nil {
				return err
			}
			if err := r.Apply(ctx, TwoCaches); err != nil {
				return err
			}
			if err := r.awaitMirrors(ctx, "alpha", mirrorsTimeout, hasMirror); err != nil {
				return err
			}
			with, err := r.rejoin(ctx, hasMirror)
			if err != nil {
				return err
			}
			if err := r.Within("the new machine is ready at most 20 s later than without caches", with.ready, without.ready+slower); err != nil {
				return err
			}
			if err := r.Within("after it is ready, the machine gets its mirrors", with.mirrors-with.ready, runningBound); err != nil {
				return err
			}
			if err := r.noPullFails(with.pullSeries, longest); err != nil {
				return err
			}
			return r.requireStores(ctx, "after the join, the machine pulls through the cache")
		},
	}
}

type joinResult struct {
	pullSeries // the pulls during the join
	// ready is the time until the Node was Ready and gardener-node-agent had applied the operating
	// system config. mirrors is the time until the node had the wanted mirror of alpha.
	ready, mirrors time.Duration
}

// rejoin removes worker2 and lets a new machine join in its place. The new machine pulls new images
// of alpha as soon as its Node exists.
func (r *Rig) rejoin(ctx context.Context, wanted func(mirror string) bool) (joinResult, error) {
	if err := r.Break(ctx, "node/worker2", "loss"); err != nil {
		return joinResult{}, err
	}
	var j joinResult
	done, start := make(chan error, 1), time.Now()
	go func() {
		err := r.DeleteFaults(ctx)
		if err == nil {
			err = r.awaitConfigured(ctx, "worker2")
		}
		j.ready = time.Since(start)
		if err == nil {
			err = r.awaitMirrors(ctx, "alpha", time.Minute, wanted)
		}
		j.mirrors = time.Since(start)
		done <- err
	}()
	var err error
	j.pullSeries, err = r.background().pullUntil(ctx, done)
	return j, err
}

// pullSeries is the result of several pulls, one after the other.
type pullSeries struct {
	succeeded int
	// failure is the last error of a pull. Errors while containerd restarts do not count, because
	// gardener-node-agent restarts it when it changes the configuration.
	failure error
	// slowest is the duration of the slowest pull, failed ones included.
	slowest time.Duration
}

// pullUntil waits for the Node of worker2, and pulls new images of alpha there until the channel
// done has a value. It returns only then.
func (r *Rig) pullUntil(ctx context.Context, done <-chan error) (s pullSeries, err error) {
	img, err := r.Push(ctx, "alpha")
	exists := false
	for {
		select {
		case ended := <-done:
			return s, errors.Join(err, ended)
		case <-time.After(pullPause):
		}
		if err != nil {
			continue
		}
		if !exists { // until the Node exists, the testbed deletes the machine's images
			_, exists = r.node(ctx, "worker2")
			continue
		}
		start := time.Now()
		_, failure := r.Exec(ctx, "worker2", "crictl", "pull", img.Reference)
		s.slowest = max(s.slowest, time.Since(start))
		switch {
		case failure == nil:
			s.succeeded++
			img, err = r.Push(ctx, "alpha")
		case !containerdRestarts.MatchString(failure.Error()):
			s.failure = failure
		}
	}
}

func (r *Rig) noPullFails(s pullSeries, bound time.Duration) error {
	const claim = "all pulls succeed while the machine joins"
	if s.failure != nil {
		return r.Require(claim, false, "%v", s.failure)
	}
	if err := r.Require(claim, s.succeeded > 0, "%d pulls", s.succeeded); err != nil {
		return err
	}
	return r.Within("the slowest of these pulls", s.slowest, bound)
}

// pullPause is the time between two pulls of a series.
const pullPause = 300 * time.Millisecond

// containerdRestarts matches crictl's errors if containerd does not run, stops during the pull, or
// has just started.
var containerdRestarts = regexp.MustCompile(`containerd\.sock: connect:|error reading from server: EOF|server is not initialized yet`)

// awaitConfigured waits until a node ("worker2") is Ready, and gardener-node-agent has applied the
// node's configuration.
func (r *Rig) awaitConfigured(ctx context.Context, name string) error {
	const bound = 2 * time.Minute
	return r.Await(ctx, name+" is Ready and has its configuration", bound, func(ctx context.Context) (bool, string, error) {
		node, exists := r.node(ctx, name)
		applied := node.Annotations[nodeagentconfigv1alpha1.AnnotationKeyChecksumAppliedOperatingSystemConfig]
		ready, why := cluster.NodeReady(&node)
		return ready && applied != "", fmt.Sprintf("exists: %t, ready: %t %s, configuration: %q", exists, ready, why, applied), nil
	})
}

// node returns the Node with the short name ("worker2"). exists is also false if the API server
// does not answer.
func (r *Rig) node(ctx context.Context, name string) (node corev1.Node, exists bool) {
	var nodes corev1.NodeList
	if err := r.get(ctx, &nodes, "nodes"); err != nil {
		return node, false
	}
	for _, node := range nodes.Items {
		if shortNode(node.Name) == name {
			return node, true
		}
	}
	return node, false
}
