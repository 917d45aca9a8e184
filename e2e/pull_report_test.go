//go:build e2e

package e2e

import (
	"context"

	"github.com/gardener-extensions/registry-cache/cachetest/pull"
	"github.com/gardener-extensions/registry-cache/e2e/rig"
	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

// pullReport proves with the upstream's log that `testbed pull` reports correctly who served each
// blob.
func pullReport() rig.Scenario {
	var img rig.Pushed
	return rig.New("pull-report",
		rig.Prove("alpha and beta are cached", rig.Cached(rig.Alpha, rig.Beta)),
		rig.Prove("a blob that the cache fetched for this pull is a miss", func(ctx context.Context, p *rig.Run) {
			img = p.Push(ctx, rig.Alpha)
			requireSource(ctx, p, img, pull.Options{Node: p.Worker(0).Name()}, pull.CacheMiss)
			p.FetchedOnce(ctx, img, accesslog.AskerCache)
		}),

		rig.Prove("a blob that the cache had stored is a hit", func(ctx context.Context, p *rig.Run) {
			before := p.Requests(ctx, img).Gets()
			requireSource(ctx, p, img, pull.Options{Node: p.Worker(1).Name()}, pull.CacheHit)
			if blobs := p.Requests(ctx, img).Gets()[len(before):].Blobs(); len(blobs) != 0 {
				p.Fatalf("%s got requests for %d blobs, so they were no hits", rig.Alpha, len(blobs))
			}
		}),

		rig.Prove("a blob that the node has is served by the node", func(ctx context.Context, p *rig.Run) {
			requireSource(ctx, p, img, pull.Options{Node: p.Worker(1).Name()}, pull.FromNode)
		}),

		rig.Prove("a blob that bypassed the cache is served by the upstream", func(ctx context.Context, p *rig.Run) {
			p.Break(ctx, "cache/"+rig.Alpha, spec.Refuse)
			other := p.Push(ctx, rig.Alpha)
			report := requireSource(ctx, p, other, pull.Options{Node: p.Worker(0).Name()}, pull.FromUpstream)
			p.FetchedOnce(ctx, other, accesslog.AskerNode)
			if report.Total.Fallbacks != 1 {
				p.Fatalf("%d fallbacks are reported, want 1", report.Total.Fallbacks)
			}
			p.Evidence("miss, hit, node and fallback distinguished, as in the upstream's log")
		}),
	)
}

// served pulls an image as `testbed pull` does, and returns the report.
func served(ctx context.Context, p *rig.Run, img rig.Pushed, options pull.Options) (*pull.Report, error) {
	options.Image, options.Timeout = img.Reference(), rig.PullTimeout
	return pull.Run(ctx, p.Session.Testbed, options)
}

// requireSource pulls an image as `testbed pull` does, and returns the report. The report must name
// this source for the image config and each layer. The image manifest is not compared, because
// every pull resolves the tag.
func requireSource(ctx context.Context, p *rig.Run, img rig.Pushed, options pull.Options, want pull.Source) *pull.Report {
	p.Helper()
	report, err := served(ctx, p, img, options)
	p.Check(err)
	p.Check(report.Err())
	blobs := 0
	for _, object := range report.Pulls[0].Objects {
		if object.Part == pull.PartManifest || object.Part == pull.PartIndex {
			continue
		}
		blobs++
		if object.By != want {
			p.Errorf("%s %s is reported as served by %q, want %q", object.Part, object.Digest, object.By, want)
		}
	}
	if blobs != len(img.Blobs) {
		p.Errorf("%d blobs are reported, the image has %d", blobs, len(img.Blobs))
	}
	if p.Failed() {
		p.FailNow()
	}
	return report
}
