package fieldbugs

import (
	"context"
	"errors"
	"strings"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/pull"
)

// Stuck has a cache whose volume never binds.
const Stuck = "e2e/fieldbugs/shoots/stuck.yaml"

// stuckCache is one cache that never gets its volume.
func stuckCache() Bug {
	return Bug{
		ID: "s21", Title: "the volume of one cache is never bound",
		Reports:     []string{"gardener#10050", "gardener-extension-registry-cache#51"},
		Symptom:     "One cache that does not come up blocks the reconciliation of the whole Shoot, and its nodes.",
		Fault:       "none: the Shoot names a StorageClass that nobody provisions",
		Expectation: "Nodes stay ready, the other caches serve, pulls of the stuck one's upstream succeed, and the Extension names the volume.",
		Lane:        Full,
		Reproduce: func(ctx context.Context, r *Rig) error {
			var refused *CommandError
			if err := r.Apply(ctx, Stuck); err != nil && !errors.As(err, &refused) {
				return err
			}
			status, err := r.Shoot(ctx)
			if err != nil {
				return err
			}
			text := extensionText(status)
			if err := r.Require("the Extension names the volume", strings.Contains(text, "gamma"), "%s", text); err != nil {
				return err
			}
			for _, node := range status.Nodes {
				if err := r.Require("nodes stay ready", node.Ready, "%s ready: %t", node.Name, node.Ready); err != nil {
					return err
				}
			}
			if err := r.requireCached(ctx, "alpha", "the other caches serve"); err != nil {
				return err
			}
			img, err := r.Push(ctx, "gamma")
			if err != nil {
				return err
			}
			report, err := r.Pull(ctx, img.Reference)
			if err != nil {
				return err
			}
			direct := BlobsBy(report, pull.FromUpstream)
			return r.Require("pulls of the stuck one's upstream succeed", report.Total.Failed == 0 && direct > 0, "%d blobs of the upstream", direct)
		},
	}
}

// extensionText is all that the Extension says in words.
func extensionText(status kind.ShootStatus) string {
	var all []string
	for _, extension := range status.Extensions {
		if extension.LastError != nil {
			all = append(all, extension.LastError.Description)
		}
		for _, condition := range extension.Conditions {
			all = append(all, condition.Message)
		}
	}
	return strings.Join(all, "; ")
}
