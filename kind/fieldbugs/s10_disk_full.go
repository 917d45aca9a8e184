package fieldbugs

import (
	"context"
	"time"
)

// diskFull is a volume without a free byte.
func diskFull() Bug {
	const bound = 10 * time.Second
	return Bug{
		ID: "s10", Slug: "volume-full", Title: "the cache's volume is full",
		Reports:     []string{"distribution#1140", "distribution#4381", "distribution#3539"},
		Symptom:     "Pulls repeatedly fail in the middle of a layer.",
		Fault:       "cache/alpha disk-full",
		Expectation: "A pull through the cache succeeds within 10 s, and the cache stays ready. It stores again when there is space.",
		Lane:        Full,
		Reproduce: func(ctx context.Context, r *Rig) error {
			if err := r.Break(ctx, "cache/alpha", "disk-full"); err != nil {
				return err
			}
			img, err := r.Push(ctx, "alpha", "--size", "8Mi")
			if err != nil {
				return err
			}
			report, err := r.Pull(ctx, img.Reference, "--node", "worker")
			if err != nil {
				return err
			}
			if err := r.Succeeded("a pull succeeds while the volume is full", report); err != nil {
				return err
			}
			past := report.Total.Fallbacks
			if err := r.Require("it comes through the cache, past the store", past == 0, "%d fallbacks", past); err != nil {
				return err
			}
			if err := r.Within("a pull while the volume is full", Slowest(report), bound); err != nil {
				return err
			}
			pod, err := r.cachePod(ctx, "alpha")
			if err != nil {
				return err
			}
			if err := r.Require("the cache stays ready", isReady(pod), "ready: %t", isReady(pod)); err != nil {
				return err
			}
			if err := r.ClearFaults(ctx); err != nil {
				return err
			}
			again, err := r.newImage(ctx, "alpha")
			if err != nil {
				return err
			}
			_, err = r.requireHit(ctx, again.Reference, "when there is space again, the cache stores again")
			return err
		},
	}
}
