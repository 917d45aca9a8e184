//go:build e2e

package e2e

import (
	"context"
	"net/http"
	"strings"

	"github.com/gardener-extensions/registry-cache/e2e/rig"
	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

// twoUpstreams proves that each upstream has its own cache, and that other upstreams are not
// cached.
func twoUpstreams() rig.Scenario {
	images := map[string]rig.Pushed{}
	return rig.New("two-upstreams",
		rig.Prove("alpha and beta are cached, gamma is not", rig.Cached(rig.Alpha, rig.Beta)),
		rig.Prove("images of both come through a cache", func(ctx context.Context, p *rig.Run) {
			for i, host := range []string{rig.Alpha, rig.Beta} {
				images[host] = p.Push(ctx, host)
				p.TimedPull(ctx, p.Worker(i%len(p.Workers())), images[host])
				p.Evidence("%s: %s", rig.Label(host), p.FetchedOnce(ctx, images[host], accesslog.AskerCache))
			}
		}),

		rig.Prove("each cache stores only images of its own upstream", func(ctx context.Context, p *rig.Run) {
			endpoints := p.Endpoints(ctx)
			for _, host := range []string{rig.Alpha, rig.Beta} {
				for of, img := range images {
					want := http.StatusOK
					if of != host {
						want = http.StatusNotFound
					}
					if got := blobStatus(ctx, p, p.Worker(0), endpoints[host], img); got != want {
						p.Errorf("the cache of %s answers %d for a blob of %s, want %d", host, got, of, want)
					}
				}
			}
			for host, img := range images {
				p.FetchedOnce(ctx, img, accesslog.AskerCache)
				for _, worker := range p.Workers() {
					if hosts := p.Hosts(ctx, worker, host); !strings.Contains(hosts, `"`+endpoints[host]+`"`) {
						p.Errorf("hosts.toml of %s on %s does not name %s:\n%s", host, worker.Name(), endpoints[host], hosts)
					}
				}
			}
			p.Evidence("each cache stores only its own upstream's image")
		}),

		rig.Prove("an image of an unconfigured upstream is pulled directly", func(ctx context.Context, p *rig.Run) {
			img := p.Push(ctx, rig.Gamma)
			took := p.Pull(ctx, p.Worker(0), img)
			p.Evidence("%s: %s, running after %s", rig.Label(rig.Gamma), p.FetchedOnce(ctx, img, accesslog.AskerNode), rig.Seconds(took))
		}),
	)
}
