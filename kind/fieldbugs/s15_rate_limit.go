package fieldbugs

import (
	"context"
	"strings"

	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
)

// rateLimit is an upstream that refuses more requests.
func rateLimit() Bug {
	return Bug{
		ID: "s15", Slug: "rate-limit", Title: "the upstream answers 429",
		Reports: []string{"distribution#3270", "gardener#3064", "harbor#13112"},
		Symptom: "During a rate limit cached images cannot be pulled, others fail with a JSON error, and each retry makes " +
			"it worse.",
		Fault: "upstream/alpha status --status 429 --header Retry-After=30",
		Expectation: "A cached digest is served. For another image the error names 429. One pull sends at most 20 requests to " +
			"the upstream.",
		Lane: Full,
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
			repository, _, _ := strings.Cut(img.Reference, ":")
			if _, err := r.requireHit(ctx, repository+"@"+img.Digest, "a cached digest is served"); err != nil {
				return err
			}
			report, err := r.Pull(ctx, cold.Reference, "--node", "worker2")
			if err != nil {
				return err
			}
			problem := ""
			if failed := report.Err(); failed != nil {
				problem = failed.Error()
			}
			if err := r.Require("the error of an image that is not cached names 429", strings.Contains(problem, "429"), "%s", problem); err != nil {
				return err
			}
			up := report.Total.Upstream
			asked := up.CacheGets + up.CacheHeads + up.NodeGets + up.NodeHeads
			return r.Require("one pull costs the upstream 20 requests at most", asked <= most, "%d requests", asked)
		},
	}
}
