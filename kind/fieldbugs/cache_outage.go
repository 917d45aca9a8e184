package fieldbugs

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
	"github.com/gardener-extensions/registry-cache/kind/pull"
)

func cacheRefuses() Bug {
	const more = 3 * time.Second
	return Bug{
		ID: "s2", Slug: "cache-refuses", Title: "a cache refuses connections",
		Reports:     []string{"containerd#4531", "k3s#9728"},
		Symptom:     "Pulls fail while the cache is down.",
		Fault:       "cache/alpha refuse",
		Expectation: "The pull succeeds without the cache, at most 3 s slower than a direct one. " + noticedExpectation,
		Reproduce: func(ctx context.Context, r *Rig) error {
			direct, err := r.directPull(ctx)
			if err != nil {
				return err
			}
			if err := r.Break(ctx, "cache/alpha", spec.Refuse); err != nil {
				return err
			}
			if err := r.pullPast(ctx, direct+more); err != nil {
				return err
			}
			return r.requireNoticed(ctx)
		},
	}
}

// directPull measures a pull from an upstream that has no cache.
func (r *Rig) directPull(ctx context.Context) (time.Duration, error) {
	_, report, err := r.pushAndPull(ctx, "gamma")
	if err != nil {
		return 0, err
	}
	return Slowest(report), report.Err()
}

// pullPast requires that a pull from alpha succeeds without the cache within the bound. The node
// may not have noticed yet that the cache fails.
func (r *Rig) pullPast(ctx context.Context, bound time.Duration, flags ...string) error {
	img, err := r.Push(ctx, "alpha", flags...)
	if err != nil {
		return err
	}
	report, err := r.requirePull(ctx, img.Reference, "the pull succeeds without the cache")
	if err != nil {
		return err
	}
	return r.Within("the pull without the cache", Slowest(report), bound)
}

func blackHole() Bug {
	const (
		layers = 5
		// The objects are the manifest by tag and by digest, the config, the layer with the program, and
		// the other layers. Each request waits for dial_timeout before the node asks the upstream.
		objects, dialTimeout, more = 4 + layers, 500 * time.Millisecond, 5 * time.Second
	)
	return Bug{
		ID: "s3", Slug: "cache-drops-packets", Title: "a cache drops packets",
		Reports:     []string{"containerd#4861", "containerd#10660", "containerd#11106", "gardener#10050"},
		Symptom:     "A pull takes minutes: each part of an image waits 30 s for the cache.",
		Fault:       "cache/alpha blackhole",
		Expectation: "The pull succeeds within 0.5 s for each part of the image plus 5 s. " + noticedExpectation,
		Reproduce: func(ctx context.Context, r *Rig) error {
			if err := r.Break(ctx, "cache/alpha", spec.Blackhole); err != nil {
				return err
			}
			if err := r.pullPast(ctx, objects*dialTimeout+more, "--layers", "5"); err != nil {
				return err
			}
			return r.requireNoticed(ctx)
		},
	}
}

func cacheHangs() Bug {
	// The node resets connections when it has noticed. containerd alone waits 30 s for an answer.
	const pullBound = 15 * time.Second
	return Bug{
		ID: "s4", Slug: "cache-hangs", Title: "a cache hangs",
		Reports:     []string{"containerd#10624", "containerd#11650"},
		Symptom:     "A pull fails after five minutes without a request to the upstream.",
		Fault:       "cache/alpha stop",
		Expectation: "A pull that begins at once succeeds within 15 s. " + noticedExpectation + " Later pulls use the cache again.",
		Reproduce: func(ctx context.Context, r *Rig) error {
			if err := r.Break(ctx, "cache/alpha", spec.Stop); err != nil {
				return err
			}
			if err := r.pullPast(ctx, pullBound, "--layers", "5"); err != nil {
				return err
			}
			if err := r.requireNoticed(ctx); err != nil {
				return err
			}
			if err := r.DeleteFaults(ctx); err != nil {
				return err
			}
			_, err := r.requireCached(ctx, "after the fault, pulls go through the cache")
			return err
		},
	}
}

func stuckCache() Bug {
	return Bug{
		ID: "s21", Slug: "volume-unbound", Title: "the volume of one cache is never bound",
		Reports: []string{"gardener#10050", "gardener-extension-registry-cache#51"},
		Symptom: "One cache that does not start blocks the reconciliation of the whole Shoot and its nodes.",
		Fault:   "none: the Shoot uses a StorageClass without a provisioner",
		Expectation: "Nodes stay ready, the other caches serve, pulls of the blocked cache's upstream succeed, and the health " +
			"of the ManagedResource names the blocked cache.",
		Reproduce: func(ctx context.Context, r *Rig) error {
			if err := r.Apply(ctx, Stuck); err != nil {
				return err
			}
			if err := r.awaitNamed(ctx, "gamma", runningBound); err != nil {
				return err
			}
			status, err := r.Shoot(ctx)
			if err != nil {
				return err
			}
			if len(status.Nodes) == 0 {
				return errors.New("the status of the Shoot has no node")
			}
			for _, node := range status.Nodes {
				if err := r.Require("nodes stay ready", node.Ready, "%s ready: %t", node.Name, node.Ready); err != nil {
					return err
				}
			}
			if _, err := r.requireCached(ctx, "the other caches serve"); err != nil {
				return err
			}
			_, report, err := r.pushAndPull(ctx, "gamma")
			if err != nil {
				return err
			}
			direct := BlobsBy(report, pull.FromUpstream)
			return r.Require("pulls of the blocked cache's upstream succeed", report.Total.Failed == 0 && direct > 0, "%d blobs of the upstream", direct)
		},
	}
}

// awaitNamed waits until a condition of the caches' ManagedResource names the blocked cache.
// Operators and owners of the Shoot can read this condition.
func (r *Rig) awaitNamed(ctx context.Context, name string, bound time.Duration) error {
	return r.Soon(ctx, "the ManagedResource names the blocked cache", bound, func(ctx context.Context) (bool, string, error) {
		out, err := r.Kubectl(ctx, "seed", "get", "managedresource", v1alpha3.ManagedResourceCaches, "--namespace=shoot--local--local",
			`--output=jsonpath={range .status.conditions[?(@.status!="True")]}{.type}: {.message}{"\n"}{end}`)
		return strings.Contains(out, name), strings.TrimSpace(out), err
	})
}
