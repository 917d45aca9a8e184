package fieldbugs

import (
	"context"
	"strings"
	"time"

	"github.com/gardener-extensions/registry-cache/kind/fault"
)

// outage is an upstream out of reach while its cache is warm.
func outage() Bug {
	const bound = 15 * time.Second
	return Bug{
		ID: "s6", Title: "the upstream is out of reach, and the image is cached",
		Reports:     []string{"distribution#1272", "distribution#3705", "harbor#18270"},
		Symptom:     "Pods do not start while the upstream has an outage, although the cache has their images.",
		Fault:       "upstream/alpha blackhole",
		Expectation: "A node that has nothing gets the image by digest and by tag, in 15 s at most: the tag costs one question that waits for 5 s.",
		Lane:        Full,
		Reproduce: func(ctx context.Context, r *Rig) error {
			img, err := r.newImage(ctx, "alpha")
			if err != nil {
				return err
			}
			if err := r.Break(ctx, "upstream/alpha", fault.Blackhole); err != nil {
				return err
			}
			repository, _, _ := strings.Cut(img.Reference, ":")
			for _, by := range []struct{ name, reference string }{{"digest", repository + "@" + img.Digest}, {"tag", img.Reference}} {
				name, reference := by.name, by.reference
				report, err := r.Pull(ctx, reference, "--node", "worker2", "--fresh")
				if err != nil {
					return err
				}
				if err := r.Succeeded("a pull by "+name+" succeeds", report); err != nil {
					return err
				}
				if err := r.Within("a pull by "+name, Slowest(report), bound); err != nil {
					return err
				}
			}
			return nil
		},
	}
}
