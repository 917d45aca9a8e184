package fieldbugs

import (
	"context"
	"time"

	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
)

// hang is a cache that accepts connections and answers nothing.
func hang() Bug {
	const bound = 45 * time.Second
	return Bug{
		ID: "s4", Slug: "cache-hangs", Title: "a cache hangs",
		Reports:     []string{"containerd#10624", "containerd#11650"},
		Symptom:     "A pull fails after five minutes, and the upstream is never asked.",
		Fault:       "cache/alpha stop",
		Expectation: "The pull succeeds within 45 s: containerd waits 30 s for the cache, once. Later pulls use the cache again.",
		Lane:        Full, Bound: 5 * time.Minute,
		Reproduce: func(ctx context.Context, r *Rig) error {
			if err := r.Break(ctx, "cache/alpha", spec.Stop); err != nil {
				return err
			}
			img, err := r.Push(ctx, "alpha")
			if err != nil {
				return err
			}
			report, err := r.Pull(ctx, img.Reference)
			if err != nil {
				return err
			}
			if err := r.Succeeded("the pull succeeds", report); err != nil {
				return err
			}
			if err := r.Within("the pull past a cache that hangs", Slowest(report), bound); err != nil {
				return err
			}
			if err := r.ClearFaults(ctx); err != nil {
				return err
			}
			_, err = r.requireCached(ctx, "when it answers again, pulls go through it")
			return err
		},
	}
}
