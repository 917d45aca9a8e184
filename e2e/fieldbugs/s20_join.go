package fieldbugs

import (
	"context"
	"strings"
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
		Expectation: "The fresh machine pulls through the cache a minute after it is back, and none of its pulls has waited for a cache that it could not reach.",
		Lane:        Full,
		Reproduce: func(ctx context.Context, r *Rig) error {
			if err := r.Break(ctx, "node/worker2", "loss"); err != nil {
				return err
			}
			start := time.Now()
			if err := r.Mend(ctx); err != nil {
				return err
			}
			if err := r.Apply(ctx, TwoCaches); err != nil {
				return err
			}
			if err := r.awaitMirrors(ctx, "alpha", bound, func(address string) bool { return address != "" }); err != nil {
				return err
			}
			if err := r.Within("the fresh machine has its mirrors", time.Since(start), bound); err != nil {
				return err
			}
			img, err := r.newImage(ctx, "alpha")
			if err != nil {
				return err
			}
			if _, err := r.requireHit(ctx, img.Reference, "it pulls through the cache"); err != nil {
				return err
			}
			out, err := r.Exec(ctx, "worker2", "journalctl", "--unit=containerd.service", "--since=-3min", "--output=cat")
			if err != nil {
				return err
			}
			waited := strings.Count(out, "i/o timeout")
			return r.Require("none of its pulls waited for a cache", waited == 0, "%d lines of its journal say i/o timeout", waited)
		},
	}
}
