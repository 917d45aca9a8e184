package fieldbugs

import (
	"context"
	"time"

	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
)

// refused is a cache that is down.
func refused() Bug {
	const more = 3 * time.Second
	return Bug{
		ID: "s2", Slug: "cache-refuses", Title: "a cache refuses connections",
		Reports:     []string{"containerd#4531", "k3s#9728"},
		Symptom:     "Pulls fail while the cache is down.",
		Fault:       "cache/alpha refuse",
		Expectation: "The pull succeeds past the cache, at most 3 s slower than a direct one.",
		Lane:        Full,
		Reproduce: func(ctx context.Context, r *Rig) error {
			direct, err := r.directPull(ctx)
			if err != nil {
				return err
			}
			if err := r.Break(ctx, "cache/alpha", spec.Refuse); err != nil {
				return err
			}
			return r.pullPast(ctx, direct+more)
		},
	}
}

// directPull measures a pull of an upstream without a cache.
func (r *Rig) directPull(ctx context.Context) (time.Duration, error) {
	img, err := r.Push(ctx, "gamma")
	if err != nil {
		return 0, err
	}
	report, err := r.Pull(ctx, img.Reference)
	if err != nil {
		return 0, err
	}
	return Slowest(report), report.Err()
}

// pullPast requires that a pull from alpha succeeds past its cache, within the bound.
func (r *Rig) pullPast(ctx context.Context, bound time.Duration, flags ...string) error {
	img, err := r.Push(ctx, "alpha", flags...)
	if err != nil {
		return err
	}
	report, err := r.Pull(ctx, img.Reference)
	if err != nil {
		return err
	}
	if err := r.Succeeded("the pull succeeds past the cache", report); err != nil {
		return err
	}
	if err := r.Require("the node asked the cache first", report.Total.Fallbacks == 1, "%d fallbacks", report.Total.Fallbacks); err != nil {
		return err
	}
	return r.Within("the pull past the cache", Slowest(report), bound)
}
