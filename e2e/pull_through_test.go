//go:build e2e

package e2e

import (
	"context"
	"time"

	"github.com/gardener-extensions/registry-cache/e2e/rig"
	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

// pullThrough proves that a pull goes through the cache, and that the next pull needs no blob from
// the upstream.
func pullThrough() rig.Scenario {
	var img rig.Pushed
	return rig.New("pull-through",
		rig.Prove("alpha and beta are cached", rig.Cached(rig.Alpha, rig.Beta)),
		rig.Prove("at the first pull the cache fetches each blob once", func(ctx context.Context, p *rig.Run) {
			img = p.Push(ctx, rig.Alpha)
			took := p.Pull(ctx, p.Worker(0), img)
			p.Evidence("worker 1, upstream: %s, running after %s", p.FetchedOnce(ctx, img, accesslog.AskerCache), rig.Seconds(took))
		}),

		rig.Prove("the second worker's pull requests no blob from the upstream", func(ctx context.Context, p *rig.Run) {
			before := p.Requests(ctx, img)
			took := p.Pull(ctx, p.Worker(1), img)
			asked := p.Requests(ctx, img)[len(before):]
			if len(asked.Gets()) != 0 || len(asked.Blobs()) != 0 || len(asked.Heads()) > 1 {
				p.Fatalf("%s got %d GETs and %d HEADs from %v, want at most a HEAD for the tag", rig.Alpha, len(asked.Gets()), len(asked.Heads()), asked.Askers())
			}
			p.FetchedOnce(ctx, img, accesslog.AskerCache)
			p.Evidence("worker 2, upstream: 0 blob requests, running after %s", rig.Seconds(took))
		}),

		rig.Prove("a tag that was pushed again gives the new image, and the old digest is still a hit", func(ctx context.Context, p *rig.Run) {
			old := store(ctx, p, rig.Alpha)
			now := p.PushBeside(ctx, old, old.Tag)
			elapse(ctx, p, time.Now().Add(time.Second)) // until then the tag counts as confirmed
			before := p.Requests(ctx, old)
			p.TimedPull(ctx, p.Worker(1), now)
			p.TimedPullOf(ctx, p.Worker(1), old.ByDigest())
			asked := p.Requests(ctx, old)[len(before):]
			gets := asked.Blobs().Gets().By(accesslog.AskerCache).PerReference()
			for _, blob := range now.Blobs {
				if gets[blob] != 1 {
					p.Fatalf("the cache fetched blob %s of the new image %d times, want once", blob, gets[blob])
				}
			}
			if nodes := asked.By(accesslog.AskerNode); len(gets) != len(now.Blobs) || len(nodes) != 0 {
				p.Fatalf("the cache fetched %d blobs, want the %d of the new image; nodes sent %d requests, want none", len(gets), len(now.Blobs), len(nodes))
			}
			p.Evidence("pushed again: the new image at once, the old digest still a hit")
		}).InFullLane(),
	)
}

// store pushes a new image to the upstream, pulls it on the first worker through the cache, and
// returns it.
func store(ctx context.Context, p *rig.Run, host string) rig.Pushed {
	p.Helper()
	img := p.Push(ctx, host)
	p.TimedPull(ctx, p.Worker(0), img)
	p.FetchedOnce(ctx, img, accesslog.AskerCache)
	return img
}

// proveHit proves that the second worker, which has not pulled the image before, gets all of it
// from the store of the cache, and returns how long that took.
func proveHit(ctx context.Context, p *rig.Run, img rig.Pushed) time.Duration {
	p.Helper()
	took := p.TimedPull(ctx, p.Worker(1), img)
	p.FetchedOnce(ctx, img, accesslog.AskerCache) // the GETs are from when it was stored
	return took
}
