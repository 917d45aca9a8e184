package fieldbugs

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/gardener-extensions/registry-cache/kind/pull"
)

// removeOne takes one of two caches away.
func removeOne() Bug {
	return Bug{
		ID: "s9", Slug: "cache-removed", Title: "one of two caches is removed",
		Reports:     []string{"spegel#67", "spegel#767"},
		Symptom:     "Nodes keep asking a deleted cache, or nodes lose the cache of the other upstream.",
		Fault:       "none: one cache is removed from the Shoot",
		Expectation: "The other cache serves from its store. Pulls of the removed cache's upstream are direct. Its volume is deleted.",
		Lane:        Full,
		Reproduce: func(ctx context.Context, r *Rig) error {
			kept, err := r.newImage(ctx, "beta")
			if err != nil {
				return err
			}
			if err := r.Apply(ctx, OneCache); err != nil {
				return err
			}
			if _, err := r.requireHit(ctx, kept.Reference, "the other cache still serves what it has stored"); err != nil {
				return err
			}
			img, err := r.Push(ctx, "alpha")
			if err != nil {
				return err
			}
			report, err := r.Pull(ctx, img.Reference, "--all")
			if err != nil {
				return err
			}
			direct, want := BlobsBy(report, pull.FromUpstream), report.Total.Pulls*(len(img.Objects)-1)
			if err := r.Require("pulls of the removed one's upstream are direct",
				report.Total.Failed == 0 && report.Total.Fallbacks == 0 && report.Total.Pulls > 0 && direct == want,
				"%d blobs of the upstream, %d fallbacks", direct, report.Total.Fallbacks); err != nil {
				return err
			}
			var claims corev1.PersistentVolumeClaimList
			if err := r.get(ctx, &claims, "persistentvolumeclaims", selector("alpha")); err != nil {
				return err
			}
			return r.Require("its volume is gone", len(claims.Items) == 0, "%d claims", len(claims.Items))
		},
	}
}
