//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/gardener-extensions/registry-cache/e2e/rig"
	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

// thunderingHerd proves that an image that all nodes pull at once costs one download.
func thunderingHerd() rig.Scenario {
	const pulledWithin = 15 * time.Second
	return rig.New("thundering-herd",
		rig.Prove("alpha and beta are cached", rig.Cached(rig.Alpha, rig.Beta)),
		rig.Prove("all nodes pull a new image of a slow upstream at once, which sends each blob once", func(ctx context.Context, p *rig.Run) {
			img := p.PushLayers(ctx, rig.Alpha, 2, 10<<20)
			p.BreakWith(ctx, "upstream/alpha", spec.Slow, map[string][]string{"rate": {"4Mi"}})
			start := time.Now()
			var pulls []*rig.Background
			for _, worker := range p.Workers() {
				pulls = append(pulls, p.Background(ctx, func(ctx context.Context) error {
					_, err := rig.TimedPull(ctx, worker, img)
					return err
				}))
			}
			for _, pull := range pulls {
				p.Join(ctx, pull, "the image is pulled on all workers", time.Until(start.Add(pulledWithin)))
			}
			took := time.Since(start)
			evidence := p.FetchedAtMost(ctx, img, accesslog.AskerCache, 2) // a download that trickles is resumed
			if sent := float64(p.Requests(ctx, img).Blobs().Bytes()) / float64(img.Bytes); sent > 1.1 {
				p.Fatalf("the upstream sent %.1f times the size of the image", sent)
			}
			p.Evidence("%d nodes at once, %s: %s", len(pulls), rig.Seconds(took), evidence)
		}),
	)
}

// rateLimit proves that a cache serves stored images during a rate limit of the upstream, and that
// pulls of other images neither hide the limit nor use it up.
func rateLimit() rig.Scenario {
	const (
		most       = 20               // requests of one pull to the upstream
		retryAfter = 30 * time.Second // as in the header
	)
	var stored, cold rig.Pushed
	return rig.New("rate-limit",
		rig.Prove("an image is stored, and the upstream answers 429", func(ctx context.Context, p *rig.Run) {
			rig.Cached(rig.Alpha, rig.Beta)(ctx, p)
			stored, cold = store(ctx, p, rig.Alpha), p.Push(ctx, rig.Alpha)
			p.BreakWith(ctx, "upstream/alpha", spec.Status, map[string][]string{"status": {"429"}, "header": {"Retry-After=30"}, "body": {"slow down"}})
		}),

		rig.Prove("the stored digest is served", func(ctx context.Context, p *rig.Run) {
			p.TimedPullOf(ctx, p.Worker(1), stored.ByDigest())
			p.Evidence("429: still a hit, %s", p.FetchedOnce(ctx, stored, accesslog.AskerCache))
		}),

		rig.Prove("a pull of another image goes on to the upstream, with few requests", func(ctx context.Context, p *rig.Run) {
			if _, err := rig.TimedPull(ctx, p.Worker(1), cold); err == nil {
				p.Fatalf("the pull succeeds, so this proves nothing")
			}
			asked := p.Requests(ctx, cold)
			if nodes := asked.By(accesslog.AskerNode); len(nodes) == 0 || len(asked) > most {
				p.Fatalf("the upstream received %d requests, %d of them from nodes, want at most %d, one of them from a node", len(asked), len(nodes), most)
			}
			p.Evidence("a pull of another image: %d requests", len(asked))
		}),

		rig.Prove("the cache's answer for it names 429", func(ctx context.Context, p *rig.Run) {
			status, answer := manifestFrom(ctx, p, fmt.Sprintf("%s/v2/%s/manifests/%s", p.Endpoints(ctx)[rig.Alpha], cold.Repository, cold.Tag))
			if _, body, _ := strings.Cut(answer, "\r\n\r\n"); !strings.Contains(body, "429") {
				p.Fatalf("the cache answers %d: %s", status, answer)
			}
		}),

		rig.Prove("after the limit the cache fetches new content", func(ctx context.Context, p *rig.Run) {
			clearFaults(ctx, p)
			awaitFetchesWithin(ctx, p, rig.Alpha, retryAfter+maxRestart)
		}),
	)
}

// downloadBreaks proves that a cache resumes downloads that the upstream cuts.
func downloadBreaks() rig.Scenario {
	const most = 1.05 // bytes that the upstream sends, divided by the size of the image
	return rig.New("download-breaks",
		rig.Prove("alpha and beta are cached", rig.Cached(rig.Alpha, rig.Beta)),
		rig.Prove("an image of an upstream that cuts each answer comes through the cache, without a byte sent twice", func(ctx context.Context, p *rig.Run) {
			// The fault ends the answer without a reset of the connection. A reset would lose bytes that the
			// upstream has already sent.
			p.BreakWith(ctx, "upstream/alpha", spec.Truncate, map[string][]string{"after": {"3Mi"}})
			img := p.PushLayers(ctx, rig.Alpha, 2, 20<<20)
			took := p.TimedPull(ctx, p.Worker(0), img)
			asked := p.Requests(ctx, img)
			gets := asked.Blobs().Gets()
			sent := float64(gets.Bytes()) / float64(img.Bytes)
			switch {
			case len(asked.By(accesslog.AskerNode)) > 0:
				p.Fatalf("nodes sent %d requests to the upstream", len(asked.By(accesslog.AskerNode)))
			case len(gets) <= 2*len(img.Blobs):
				p.Fatalf("%d GETs for %d blobs: no download was resumed, so this proves nothing", len(gets), len(img.Blobs))
			case sent > most:
				p.Fatalf("the upstream sent %.3f times the size of the image, want at most %.2f", sent, most)
			}
			p.Evidence("%d GETs for %d blobs, %.3f times the size of the image, pull %s", len(gets), len(img.Blobs), sent, rig.Seconds(took))
		}),
	)
}
