package fieldbugs

import (
	"context"
	"time"

	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
)

// thunderingHerd is many cold nodes at once.
func thunderingHerd() Bug {
	const bound = 15 * time.Second
	const once = "the upstream sends each blob once"
	return Bug{
		ID: "s14", Slug: "thundering-herd", Title: "all nodes pull an uncached image at once",
		Reports:     []string{"distribution#3969", "distribution#4511", "distribution#4664"},
		Symptom:     "A rollout to N nodes costs N downloads from the upstream in spite of the cache.",
		Fault:       "upstream/alpha slow --rate 4Mi",
		Expectation: "All pulls succeed, and the upstream sends each blob once.",
		Lane:        Full,
		Reproduce: func(ctx context.Context, r *Rig) error {
			img, err := r.Push(ctx, "alpha", "--layers", "2", "--size", "10Mi")
			if err != nil {
				return err
			}
			if err := r.Break(ctx, "upstream/alpha", spec.Slow, "--rate", "4Mi"); err != nil {
				return err
			}
			report, err := r.Pull(ctx, img.Reference, "--all", "--parallel", "2")
			if err != nil {
				return err
			}
			if err := r.Succeeded("all pulls succeed", report); err != nil {
				return err
			}
			if err := r.Within("the slowest of them", Slowest(report), bound); err != nil {
				return err
			}
			sent := float64(report.Total.Upstream.Bytes) / float64(img.Bytes)
			return r.Require(once, sent < 1.1, "it sent %.1f times the size of the image", sent)
		},
	}
}
