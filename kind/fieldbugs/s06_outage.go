package fieldbugs

import (
	"context"
	"strings"
	"time"

	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
)

// outage is an unreachable upstream whose images are cached.
func outage() Bug {
	const (
		byDigest = 5 * time.Second // nobody is asked
		byTag    = 15 * time.Second
	)
	return Bug{
		ID: "s6", Slug: "upstream-outage", Title: "the upstream is unreachable, and the image is cached",
		Reports:     []string{"distribution#1272", "distribution#3705", "harbor#18270"},
		Symptom:     "Pods do not start during an outage of the upstream, although the cache has their images.",
		Fault:       "upstream/alpha blackhole",
		Expectation: "A new node gets the image by digest within 5 s, and by tag within 15 s (one request times out after 5 s).",
		Lane:        Full,
		Reproduce: func(ctx context.Context, r *Rig) error {
			img, err := r.newImage(ctx, "alpha")
			if err != nil {
				return err
			}
			if err := r.Break(ctx, "upstream/alpha", spec.Blackhole); err != nil {
				return err
			}
			repository, _, _ := strings.Cut(img.Reference, ":")
			for _, by := range []struct {
				name, reference string
				bound           time.Duration
			}{{"digest", repository + "@" + img.Digest, byDigest}, {"tag", img.Reference, byTag}} {
				report, err := r.Pull(ctx, by.reference, "--node", "worker2", "--fresh")
				if err != nil {
					return err
				}
				if err := r.Succeeded("a pull by "+by.name+" succeeds", report); err != nil {
					return err
				}
				if err := r.Within("a pull by "+by.name, Slowest(report), by.bound); err != nil {
					return err
				}
			}
			return nil
		},
	}
}
