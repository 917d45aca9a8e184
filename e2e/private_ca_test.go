//go:build e2e

package e2e

import (
	"context"
	"net/http"
	"strings"

	"k8s.io/utils/ptr"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/cachetest"
	"github.com/gardener-extensions/registry-cache/e2e/rig"
	"github.com/gardener-extensions/registry-cache/kind/certificate"
	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

// privateCA proves that an upstream with a certificate from a private CA is cached, and that nodes
// pull from the upstream directly when its cache is down.
func privateCA() rig.Scenario {
	refer := rig.References{}
	cache := v1alpha3.RegistryCache{
		Upstream: rig.Private, RemoteURL: ptr.To("https://" + rig.Private), CABundleSecretReferenceName: ptr.To("ca"),
	}
	caches := []v1alpha3.RegistryCache{cachetest.Cache(rig.Alpha), cachetest.Cache(rig.Beta), cache}
	return rig.New("private-ca",
		rig.Prove("no node trusts the upstream", func(ctx context.Context, p *rig.Run) {
			ca, err := certificate.New("e2e private CA")
			p.Check(err)
			options := p.Session.Testbed.UpstreamOptions(rig.Private)
			options.CA = ca
			p.Upstream(ctx, options)
			refer["ca"] = p.Secret(ctx, map[string][]byte{"bundle.crt": ca.PEM()}, nil)
			for _, worker := range p.Workers() {
				_, err := worker.Exec(ctx, "curl", "--silent", "--max-time", "10", "https://"+rig.Private+"/v2/")
				if err == nil || !strings.Contains(err.Error(), "exit status 60") {
					p.Fatalf("%s trusts %s, so this proves nothing: %v", worker.Name(), rig.Private, err)
				}
			}
		}),

		rig.Prove("the upstream's cache trusts the upstream", func(ctx context.Context, p *rig.Run) {
			p.Check(rig.UndoLeftovers(ctx, p))
			p.Configure(ctx, refer, caches...)
			img := p.Push(ctx, rig.Private)
			took := p.Pull(ctx, p.Worker(0), img)
			evidence := p.FetchedOnce(ctx, img, accesslog.AskerCache)
			proveByHTTPS(ctx, p, img)
			p.Evidence("private CA: %s, by HTTPS, running after %s", evidence, rig.Seconds(took))
		}),

		rig.Prove("the upstream's cache is scaled to 0", stopCache(rig.Private)),
		rig.Prove("nodes trust the upstream when its cache is down", func(ctx context.Context, p *rig.Run) {
			worker := p.Worker(0)
			p.Await(ctx, "hosts.toml names the CA, but no mirror", rig.NoticedTimeout, func(ctx context.Context) (bool, string, error) {
				hosts := p.Hosts(ctx, worker, rig.Private)
				return strings.Contains(hosts, "certificates") && !strings.Contains(hosts, "[host."), hosts, nil
			})
			img := p.Push(ctx, rig.Private)
			took := p.TimedPull(ctx, worker, img)
			p.Evidence("cache scaled to 0: pull %s, upstream: %s", rig.Seconds(took), p.FetchedOnce(ctx, img, accesslog.AskerNode))
		}),
	)
}

// proveByHTTPS proves that the upstream served nothing of the image over plain HTTP.
func proveByHTTPS(ctx context.Context, p *rig.Run, img rig.Pushed) {
	p.Helper()
	plain := p.Requests(ctx, img).Filter(func(r accesslog.Record) bool { return r.Scheme != "https" })
	if len(plain) != 0 {
		p.Fatalf("%s got a request over plain HTTP: %s %s, status %s", img.Host, plain[0].Method, plain[0].Path, http.StatusText(plain[0].Status))
	}
}
