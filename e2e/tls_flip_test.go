//go:build e2e

package e2e

import (
	"context"
	"strings"
	"time"

	"sigs.k8s.io/e2e-framework/pkg/features"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

// tlsFlip proves that HTTPS goes on and off again, faster than nodes follow, without a pull that fails or takes long.
func tlsFlip() features.Feature {
	var pulls *stream
	var before string
	return scenario("tls-flip",
		step{"alpha is cached", func(ctx context.Context, p *proof) {
			cached(alpha)(ctx, p)
			before = p.Endpoints(ctx)[alpha]
			pulls = pullContinuously(ctx, p, alpha)
		}},
		step{"HTTPS goes on, off, on and off, one right after the other", func(ctx context.Context, p *proof) {
			start := time.Now()
			for i, scheme := range []string{"https", "http", "https", "http"} {
				cache := kind.CacheOf(alpha)
				if scheme == "https" {
					cache = tlsCache(alpha)
				}
				p.Check(reconcileConfig(ctx, cache))
				if endpoint := p.Endpoints(ctx)[alpha]; !strings.HasPrefix(endpoint, scheme+"://") {
					p.Fatalf("after change %d the endpoint is %s, want %s", i+1, endpoint, scheme)
				}
			}
			p.Evidence("on, off, on, off in %s", seconds(time.Since(start)))
		}},
		step{"no pull failed or took long", func(ctx context.Context, p *proof) {
			p.AwaitCaches(ctx, alpha)
			p.AwaitMirrors(ctx, alpha)
			pulls.end(p, alpha, maxPull)
		}},
		step{"all is as before", func(ctx context.Context, p *proof) {
			if after := p.Endpoints(ctx)[alpha]; after != before {
				p.Errorf("the endpoint was %s, is %s", before, after)
			}
			for _, worker := range p.Workers() {
				if hosts := p.Hosts(ctx, worker, alpha); strings.Contains(hosts, "CERTIFICATE") || strings.Contains(hosts, "https://10.") {
					p.Errorf("hosts.toml on %s still is the one for HTTPS:\n%s", worker.Name(), hosts)
				}
				img := p.Push(ctx, alpha)
				p.TimedPull(ctx, worker, img)
				p.FetchedOnce(ctx, img, accesslog.AskerCache)
			}
			p.Evidence("a hit on every worker by %s", before)
		}},
	)
}
