package fieldbugs

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
)

// outageRestart is a cache that restarts while its upstream is unreachable.
func outageRestart() Bug {
	const ready, pulled = 30 * time.Second, 15 * time.Second
	return Bug{
		ID: "s7", Slug: "outage-and-restart", Title: "the upstream is unreachable, and the cache restarts",
		Reports:     []string{"distribution#4038", "distribution#1435", "distribution#4490"},
		Symptom:     "The cache crashes repeatedly, exactly when it is needed: it asks the upstream before it serves.",
		Fault:       "upstream/alpha blackhole; cache/alpha kill",
		Expectation: "The cache is ready within 30 s and serves stored images by tag.",
		Lane:        Full,
		Reproduce: func(ctx context.Context, r *Rig) error {
			img, err := r.newImage(ctx, "alpha")
			if err != nil {
				return err
			}
			before, err := r.cachePod(ctx, "alpha")
			if err != nil {
				return err
			}
			if err := r.Break(ctx, "upstream/alpha", spec.Blackhole); err != nil {
				return err
			}
			start := time.Now()
			if err := r.Break(ctx, "cache/alpha", spec.Kill); err != nil {
				return err
			}
			if err := r.awaitCache(ctx, "alpha", ready, func(pod corev1.Pod) bool { return pod.UID != before.UID }); err != nil {
				return err
			}
			if err := r.Within("the cache is ready again", time.Since(start), ready); err != nil {
				return err
			}
			report, err := r.Pull(ctx, img.Reference, "--node", "worker2", "--fresh")
			if err != nil {
				return err
			}
			if err := r.Succeeded("a pull by tag succeeds", report); err != nil {
				return err
			}
			return r.Within("a pull by tag", Slowest(report), pulled)
		},
	}
}
