package fieldbugs

import (
	"context"

	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
)

func downloadBreaks() Bug {
	const most = 1.05 // of the size of the image
	return Bug{
		ID: "s26", Slug: "download-breaks", Title: "the upstream closes the connection during each download",
		Reports: []string{"harbor#23600", "moby#35686", "distribution#4381"},
		Symptom: "Large layers cannot be pulled through the cache, although a direct pull resumes and succeeds. Each attempt " +
			"starts again at the first byte.",
		Fault:       "upstream/alpha truncate --after 3Mi",
		Expectation: "The pull through the cache succeeds, and the upstream sends at most 1.05 times the size of the image.",
		Reproduce: func(ctx context.Context, r *Rig) error {
			// A reset loses bytes that the upstream has already sent.
			if err := r.Break(ctx, "upstream/alpha", spec.Truncate, "--after", "3Mi"); err != nil {
				return err
			}
			img, err := r.Push(ctx, "alpha", "--size", "20Mi")
			if err != nil {
				return err
			}
			report, err := r.requirePull(ctx, img.Reference, "the pull succeeds", "--node", "worker")
			if err != nil {
				return err
			}
			past := report.Total.Fallbacks
			if err := r.Require("the image comes through the cache", past == 0, "%d fallbacks", past); err != nil {
				return err
			}
			gets, sent := report.Total.Upstream.CacheGets, float64(report.Total.Upstream.Bytes)/float64(img.Bytes)
			if err := r.Require("downloads were resumed", gets > 2*len(img.Objects), "%d GETs for %d objects", gets, len(img.Objects)); err != nil {
				return err
			}
			return r.Require("the upstream sends no byte twice", sent <= most, "it sent %.3f times the size of the image", sent)
		},
	}
}
