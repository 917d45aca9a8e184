package fieldbugs

import (
	"context"
	"strings"

	"github.com/gardener-extensions/registry-cache/kind/pull"
)

// warmHit is a pull of a cached image.
func warmHit() Bug {
	return Bug{
		ID: "s1", Slug: "warm-hit", Title: "a second node's pull costs the upstream no blob, and a moved tag is seen",
		Reports: []string{"gardener#3064", "distribution#4050", "spegel#859"},
		Symptom: "Rate limits are hit although there is a cache, or nodes keep using an old latest.",
		Fault:   "none: the tag is pushed again",
		Expectation: "The second node sends no GET to the upstream. A tag that was pushed again gives the new image at once, " +
			"and the old digest is still served.",
		Lane: Full,
		Reproduce: func(ctx context.Context, r *Rig) error {
			img, err := r.newImage(ctx, "alpha")
			if err != nil {
				return err
			}
			report, err := r.requireHit(ctx, img.Reference, "the second node's blobs come from the cache's store")
			if err != nil {
				return err
			}
			gets := report.Total.Upstream.CacheGets + report.Total.Upstream.NodeGets
			heads := report.Total.Upstream.CacheHeads + report.Total.Upstream.NodeHeads
			if err := r.Require("the upstream sends nothing for the second node", gets == 0 && heads <= 1, "%d GETs, %d HEADs", gets, heads); err != nil {
				return err
			}
			repository, _, _ := strings.Cut(strings.TrimPrefix(img.Reference, host("alpha")+"/"), ":")
			again, err := r.Push(ctx, "alpha", "--name", repository+":latest")
			if err != nil {
				return err
			}
			if report, err = r.Pull(ctx, again.Reference, "--node", "worker2", "--fresh"); err != nil {
				return err
			}
			misses := BlobsBy(report, pull.CacheMiss)
			if err := r.Require("a tag that was pushed again gives the new image, by the cache",
				report.Digest == again.Digest && misses > 0 && report.Total.Fallbacks == 0, "%d blobs fetched by the cache", misses); err != nil {
				return err
			}
			_, err = r.requireHit(ctx, host("alpha")+"/"+repository+"@"+img.Digest, "the old digest is still served")
			return err
		},
	}
}
