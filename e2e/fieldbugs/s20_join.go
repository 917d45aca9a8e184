package fieldbugs

import (
	"context"
	"time"
)

// join is a machine that is lost and comes back as a fresh one.
func join() Bug {
	const bound = time.Minute
	return Bug{
		ID: "s20", Title: "a machine is lost, and a fresh one joins",
		Reports:     []string{"gardener-extension-registry-cache#68", "gardener-extension-registry-cache#444"},
		Symptom:     "A new node needs many minutes: its first images are asked of a cache that the node cannot reach yet.",
		Fault:       "node/worker2 loss",
		Expectation: "The fresh machine pulls through the cache a minute after it is back, and its first pull takes 5 s at most.",
		Lane:        Full,
		Reproduce: func(ctx context.Context, r *Rig) error {
			if err := r.Break(ctx, "node/worker2", "loss"); err != nil {
				return err
			}
			start := time.Now()
			if err := r.Mend(ctx); err != nil {
				return err
			}
			if err := r.awaitMirrors(ctx, "alpha", bound, func(address string) bool { return address != "" }); err != nil {
				return err
			}
			if err := r.Within("the fresh machine has its mirrors", time.Since(start), bound); err != nil {
				return err
			}
			img, err := r.Push(ctx, "beta")
			if err != nil {
				return err
			}
			first, err := r.Pull(ctx, img.Reference, "--node", "worker2")
			if err != nil {
				return err
			}
			if err := r.Succeeded("its first pull succeeds", first); err != nil {
				return err
			}
			if err := r.Within("its first pull", Slowest(first), 5*time.Second); err != nil {
				return err
			}
			stored, err := r.newImage(ctx, "alpha")
			if err != nil {
				return err
			}
			_, err = r.requireHit(ctx, stored.Reference, "it pulls through the cache")
			return err
		},
	}
}
