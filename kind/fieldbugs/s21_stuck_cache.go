package fieldbugs

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/kind/pull"
)

// Stuck has a cache whose volume never binds.
const Stuck = "kind/fieldbugs/shoots/stuck.yaml"

// stuckCache is one cache that never gets its volume.
func stuckCache() Bug {
	const bound = soon
	return Bug{
		ID: "s21", Slug: "volume-unbound", Title: "the volume of one cache is never bound",
		Reports: []string{"gardener#10050", "gardener-extension-registry-cache#51"},
		Symptom: "One cache that does not start blocks the reconciliation of the whole Shoot and its nodes.",
		Fault:   "none: the Shoot uses a StorageClass without a provisioner",
		Expectation: "Nodes stay ready, the other caches serve, pulls of the blocked cache's upstream succeed, and the health " +
			"of the ManagedResource names the blocked cache.",
		Lane: Full,
		Reproduce: func(ctx context.Context, r *Rig) error {
			if err := r.Apply(ctx, Stuck); err != nil {
				return err
			}
			if err := r.awaitNamed(ctx, "gamma", bound); err != nil {
				return err
			}
			status, err := r.Shoot(ctx)
			if err != nil {
				return err
			}
			if len(status.Nodes) == 0 {
				return errors.New("the shoot tells of no node")
			}
			for _, node := range status.Nodes {
				if err := r.Require("nodes stay ready", node.Ready, "%s ready: %t", node.Name, node.Ready); err != nil {
					return err
				}
			}
			if _, err := r.requireCached(ctx, "the other caches serve"); err != nil {
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
			return r.Require("pulls of the blocked cache's upstream succeed", report.Total.Failed == 0 && direct > 0, "%d blobs of the upstream", direct)
		},
	}
}

// awaitNamed waits until the health of the caches' ManagedResource, which operators and owners see,
// names the one that is stuck.
func (r *Rig) awaitNamed(ctx context.Context, name string, bound time.Duration) error {
	return r.Soon(ctx, "the ManagedResource names the blocked cache", bound, func(ctx context.Context) (bool, string, error) {
		out, err := r.Kubectl(ctx, "seed", "get", "managedresource", v1alpha3.ManagedResourceCaches, "--namespace=shoot--local--local",
			`--output=jsonpath={range .status.conditions[?(@.status!="True")]}{.type}: {.message}{"\n"}{end}`)
		return strings.Contains(out, name), strings.TrimSpace(out), err
	})
}
