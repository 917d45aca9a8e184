package fieldbugs

import (
	"context"
	"time"

	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
)

// blackHole is a cache whose packets are dropped.
func blackHole() Bug {
	const (
		layers = 5
		// Manifest by tag and by digest, the config, the layer with the program, and the others: each
		// waits for dial_timeout, a second, though three layers wait at once.
		objects, dialTimeout, more = 4 + layers, time.Second, 5 * time.Second
	)
	return Bug{
		ID: "s3", Slug: "cache-drops-packets", Title: "a cache drops packets",
		Reports:     []string{"containerd#4861", "containerd#10660", "containerd#11106", "gardener#10050"},
		Symptom:     "A pull takes minutes: each part of an image waits 30 s for the cache.",
		Fault:       "cache/alpha blackhole",
		Expectation: "The pull succeeds within 1 s for each part of the image plus 5 s.",
		Lane:        Full,
		Reproduce: func(ctx context.Context, r *Rig) error {
			if err := r.Break(ctx, "cache/alpha", spec.Blackhole); err != nil {
				return err
			}
			return r.pullPast(ctx, objects*dialTimeout+more, "--layers", "5")
		},
	}
}
