package fieldbugs

import (
	"context"
	"time"
)

const (
	// noticedBound limits the time until nodes stop asking a cache that fails: ten seconds
	// (docs/node.md), and two to look at the nodes.
	noticedBound = 12 * time.Second
	// maxExtra is how much longer than a direct pull one may take when nodes have noticed.
	maxExtra = time.Second
)

const noticedExpectation = "Within 10 s nodes stop asking the cache. Then a pull takes at most 1 s longer than a direct one."

// requireNoticed requires that nodes stop asking alpha's cache, and that a pull of five layers
// takes at most maxExtra longer then than one from an upstream without a cache.
func (r *Rig) requireNoticed(ctx context.Context) error {
	err := r.Soon(ctx, "nodes stop asking the cache", noticedBound, func(ctx context.Context) (bool, string, error) {
		status, err := r.Shoot(ctx)
		if err != nil {
			return false, "", err
		}
		ok, state := mirrorsFit(status.Nodes, "alpha", func(address string) bool { return address == "" })
		return ok, state, nil
	})
	if err != nil {
		return err
	}
	var took [2]time.Duration
	for i, upstream := range []string{"gamma", "alpha"} {
		img, err := r.Push(ctx, upstream, "--layers", "5")
		if err != nil {
			return err
		}
		report, err := r.requirePull(ctx, img.Reference, "pulls succeed")
		if err != nil {
			return err
		}
		took[i] = Slowest(report)
	}
	return r.Within("the extra time of a pull without the cache", took[1]-took[0], maxExtra)
}
