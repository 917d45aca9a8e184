//go:build e2e

package e2e

import (
	"context"
	"net/http"
	"strings"


	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

// twoUpstreams proves that each upstream has a cache of its own, and that others are none of ours.
func twoUpstreams() scenario {
	images := map[string]pushed{}
	return newScenario("two-upstreams",
		step{"alpha and beta are cached, gamma is not", cached(alpha, beta)},
		step{"images of both come through a cache", func(ctx context.Context, p *scenarioRun) {
			for i, host := range []string{alpha, beta} {
				images[host] = p.Push(ctx, host)
				p.Pull(ctx, p.Worker(i%len(p.Workers())), images[host]) // there may be one
				p.Evidence("%s: %s", label(host), p.FetchedOnce(ctx, images[host], accesslog.AskerCache))
			}
		}},
		step{"each cache holds its own upstream's image and not the other's", func(ctx context.Context, p *scenarioRun) {
			endpoints := p.Endpoints(ctx)
			for _, host := range []string{alpha, beta} {
				for of, img := range images {
					want := http.StatusOK
					if of != host {
						want = http.StatusNotFound
					}
					if got := p.BlobStatus(ctx, p.Worker(0), endpoints[host], img); got != want {
						p.Errorf("the cache of %s answers %d for a blob of %s, want %d", host, got, of, want)
					}
				}
			}
			for host, img := range images {
				p.FetchedOnce(ctx, img, accesslog.AskerCache) // the caches answered by themselves
				for _, worker := range p.Workers() {
					if hosts := p.Hosts(ctx, worker, host); !strings.Contains(hosts, `"`+endpoints[host]+`"`) {
						p.Errorf("hosts.toml of %s on %s does not name %s:\n%s", host, worker.Name(), endpoints[host], hosts)
					}
				}
			}
			p.Evidence("each cache holds only its own upstream's image")
		}},
		step{"an image of an unconfigured upstream goes direct", func(ctx context.Context, p *scenarioRun) {
			img := p.Push(ctx, gamma)
			took := p.Pull(ctx, p.Worker(0), img)
			p.Evidence("%s: %s, running after %s", label(gamma), p.FetchedOnce(ctx, img, accesslog.AskerNode), seconds(took))
		}},
	)
}

// label is the short name of an upstream: alpha for alpha.upstream.test.
func label(host string) string {
	short, _, _ := strings.Cut(host, ".")
	return short
}

func labels(hosts []string) string {
	short := make([]string, 0, len(hosts))
	for _, host := range hosts {
		short = append(short, label(host))
	}
	return strings.Join(short, ", ")
}
