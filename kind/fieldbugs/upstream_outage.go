package fieldbugs

import (
	"context"
	"strings"
	"time"

	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
)

// outages are the ways in which the upstream is away in s6. The faults before are active when the
// image is pulled for the first time. Of the faults during the outage, an earlier one also applies
// to the token server of a later one.
var outages = []struct {
	name           string
	before, during []spec.Kind
}{
	{"blackhole", nil, []spec.Kind{spec.Blackhole}},
	{"hang", []spec.Kind{spec.Token}, []spec.Kind{spec.Token, spec.Hang}},
	{"hang with its token server", []spec.Kind{spec.Token}, []spec.Kind{spec.Hang, spec.Token}},
}

func upstreamOutage() Bug {
	return Bug{
		ID: "s6", Slug: "upstream-outage", Title: "the upstream is unreachable or hangs, and the image is cached",
		Reports:     []string{"distribution#1272", "distribution#3705", "harbor#18270"},
		Symptom:     "Pods do not start during an outage of the upstream, although the cache has their images.",
		Fault:       "upstream/alpha blackhole; token and then hang; hang and then token, so that the token server hangs, too",
		Expectation: "In each outage a new node gets the image by digest and by tag within 5 s.",
		Reproduce: func(ctx context.Context, r *Rig) error {
			for _, outage := range outages {
				for _, kind := range outage.before {
					if err := r.Break(ctx, "upstream/alpha", kind); err != nil {
						return err
					}
				}
				img, err := r.newImage(ctx, "alpha")
				if err != nil {
					return err
				}
				if err := r.DeleteFaults(ctx); err != nil {
					return err
				}
				for _, kind := range outage.during {
					if err := r.Break(ctx, "upstream/alpha", kind); err != nil {
						return err
					}
				}
				if err := r.pullBothWays(ctx, img.Reference, img.Digest, outage.name); err != nil {
					return err
				}
				if err := r.DeleteFaults(ctx); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// pullBothWays requires that a new node gets a stored image by digest and by tag within 5 s. By tag
// the cache first waits 1.5 s for the upstream.
func (r *Rig) pullBothWays(ctx context.Context, reference, digest, outage string) error {
	const bound = 5 * time.Second
	repository, _, _ := strings.Cut(reference, ":")
	for _, by := range []struct{ name, reference string }{{"digest", repository + "@" + digest}, {"tag", reference}} {
		claim := outage + ": a pull by " + by.name
		report, err := r.requirePull(ctx, by.reference, claim+" succeeds", "--node", "worker2", "--fresh")
		if err != nil {
			return err
		}
		if err := r.Within(claim, Slowest(report), bound); err != nil {
			return err
		}
	}
	return nil
}

func outageRestart() Bug {
	const ready, pulled = 30 * time.Second, 15 * time.Second
	return Bug{
		ID: "s7", Slug: "outage-and-restart", Title: "the upstream is unreachable, and the cache restarts",
		Reports:     []string{"distribution#4038", "distribution#1435", "distribution#4490"},
		Symptom:     "The cache crashes repeatedly, exactly when it is needed: at its start it asks the upstream.",
		Fault:       "upstream/alpha blackhole; cache/alpha kill",
		Expectation: "The cache is ready within 30 s and serves stored images by tag.",
		Reproduce: func(ctx context.Context, r *Rig) error {
			img, err := r.newImage(ctx, "alpha")
			if err != nil {
				return err
			}
			before, err := r.cachePod(ctx, "alpha")
			if err != nil {
				return err
			}
			if err := r.Break(ctx, "upstream/alpha", spec.Blackhole); err != nil {
				return err
			}
			start := time.Now()
			if err := r.Break(ctx, "cache/alpha", spec.Kill); err != nil {
				return err
			}
			if err := r.awaitCache(ctx, "alpha", ready, before); err != nil {
				return err
			}
			if err := r.Within("the cache is ready again", time.Since(start), ready); err != nil {
				return err
			}
			report, err := r.requirePull(ctx, img.Reference, "a pull by tag succeeds", "--node", "worker2", "--fresh")
			if err != nil {
				return err
			}
			return r.Within("a pull by tag", Slowest(report), pulled)
		},
	}
}

func thunderingHerd() Bug {
	const bound = 15 * time.Second
	return Bug{
		ID: "s14", Slug: "thundering-herd", Title: "all nodes pull an uncached image at once",
		Reports:     []string{"distribution#3969", "distribution#4511", "distribution#4664"},
		Symptom:     "A rollout to N nodes costs N downloads from the upstream in spite of the cache.",
		Fault:       "upstream/alpha slow --rate 4Mi",
		Expectation: "All pulls succeed, and the upstream sends each blob once.",
		Reproduce: func(ctx context.Context, r *Rig) error {
			img, err := r.Push(ctx, "alpha", "--layers", "2", "--size", "10Mi")
			if err != nil {
				return err
			}
			if err := r.Break(ctx, "upstream/alpha", spec.Slow, "--rate", "4Mi"); err != nil {
				return err
			}
			// Nodes pull directly for a moment when a cache restarts, as it may have before.
			if err := r.awaitMirrors(ctx, "alpha", mirrorsTimeout, hasMirror); err != nil {
				return err
			}
			report, err := r.requirePull(ctx, img.Reference, "all pulls succeed", "--all", "--parallel", "2")
			if err != nil {
				return err
			}
			if err := r.Within("the slowest of these pulls", Slowest(report), bound); err != nil {
				return err
			}
			sent := float64(report.Total.Upstream.Bytes) / float64(img.Bytes)
			return r.Require("the upstream sends each blob once", sent < 1.1, "it sent %.1f times the size of the image", sent)
		},
	}
}

func rateLimit() Bug {
	return Bug{
		ID: "s15", Slug: "rate-limit", Title: "the upstream answers 429",
		Reports: []string{"distribution#3270", "gardener#3064", "harbor#13112"},
		Symptom: "During a rate limit cached images cannot be pulled, others fail with a JSON error, and retries use up the " +
			"limit.",
		Fault: "upstream/alpha status --status 429 --header Retry-After=30",
		Expectation: "A cached digest is served. For another image the cache's answer names 429, with a status for which " +
			"containerd goes on to the upstream. One pull sends at most 20 requests to the upstream.",
		Reproduce: func(ctx context.Context, r *Rig) error {
			const most = 20
			img, err := r.newImage(ctx, "alpha")
			if err != nil {
				return err
			}
			cold, err := r.Push(ctx, "alpha")
			if err != nil {
				return err
			}
			if err := r.Break(ctx, "upstream/alpha", spec.Status, "--status", "429", "--header", "Retry-After=30", "--body", "slow down"); err != nil {
				return err
			}
			stored, _, _ := strings.Cut(img.Reference, ":")
			if _, err := r.requireHit(ctx, stored+"@"+img.Digest, "a cached digest is served"); err != nil {
				return err
			}
			report, err := r.Pull(ctx, cold.Reference, "--node", "worker2")
			if err != nil {
				return err
			}
			up := report.Total.Upstream
			if err := r.Require("the node goes on to the upstream", up.NodeGets+up.NodeHeads > 0, "%d requests of the node", up.NodeGets+up.NodeHeads); err != nil {
				return err
			}
			endpoint, err := r.endpoint(ctx, "alpha")
			if err != nil {
				return err
			}
			repository, tag, _ := strings.Cut(strings.TrimPrefix(cold.Reference, host("alpha")+"/"), ":")
			answer, err := r.Exec(ctx, "worker2", "curl", "--silent", endpoint+"/v2/"+repository+"/manifests/"+tag)
			if err != nil {
				return err
			}
			if err := r.Require("the cache's answer for an image that is not cached names 429", strings.Contains(answer, "429"), "%s", answer); err != nil {
				return err
			}
			asked := up.CacheGets + up.CacheHeads + up.NodeGets + up.NodeHeads
			return r.Require("one pull sends at most 20 requests to the upstream", asked <= most, "%d requests", asked)
		},
	}
}
