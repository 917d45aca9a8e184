//go:build e2e

package e2e

import (
	"context"

	"github.com/gardener-extensions/registry-cache/e2e/rig"
	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

// pullThrough proves that a pull goes through the cache, and that the next pull needs no blob from
// the upstream.
func pullThrough() rig.Scenario {
	var img rig.Pushed
	return rig.New("pull-through",
		rig.Prove("alpha and beta are cached", rig.Cached(rig.Alpha, rig.Beta)),
		rig.Prove("the first pull fetches each blob once, by the cache", func(ctx context.Context, p *rig.Run) {
			img = p.Push(ctx, rig.Alpha)
			took := p.Pull(ctx, p.Worker(0), img)
			p.Evidence("worker 1, upstream: %s, running after %s", p.FetchedOnce(ctx, img, accesslog.AskerCache), rig.Seconds(took))
		}),

		rig.Prove("the second worker's pull requests no blob from the upstream", func(ctx context.Context, p *rig.Run) {
			before := p.Requests(ctx, img)
			took := p.Pull(ctx, p.Worker(1), img)
			blobs := p.Requests(ctx, img)[len(before):].Blobs()
			if len(blobs) != 0 {
				p.Fatalf("%s got requests for %d blobs from %v, want none", rig.Alpha, len(blobs), blobs.Askers())
			}
			p.FetchedOnce(ctx, img, accesslog.AskerCache)
			p.Evidence("worker 2, upstream: 0 blob requests, running after %s", rig.Seconds(took))
		}),
	)
}
