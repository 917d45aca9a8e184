//go:build e2e

package e2e

import (
	"context"
	"crypto/rand"
	"net/http"

	"k8s.io/utils/ptr"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/kind/operate"
	"github.com/gardener-extensions/registry-cache/kind/upstream"
	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

// credentials proves that a cache shows its upstream the credentials that its Shoot refers to, also when they are
// rotated, and that nobody else gets to see them.
func credentials() scenario {
	var registry *upstream.Registry
	var img pushed
	refer, old, current := references{}, newCredentials(), newCredentials()
	cache := operate.CacheOf(private)
	cache.SecretReferenceName = ptr.To("first")
	caches := []v1alpha3.RegistryCache{operate.CacheOf(alpha), operate.CacheOf(beta), cache}
	return newScenario("credentials",
		step{"an upstream asks for credentials", func(ctx context.Context, p *scenarioRun) {
			options := p.suite.testbed.UpstreamOptions(private)
			options.Credentials = &old
			registry = p.Upstream(ctx, options)
			proveAsksForCredentials(ctx, p)
		}},
		step{"its cache has them", func(ctx context.Context, p *scenarioRun) {
			p.Check(undoLeftovers(ctx, p))
			refer["first"] = p.Secret(ctx, secretOf(old), nil)
			p.Configure(ctx, refer, caches...)
			img = p.Push(ctx, private)
			took := p.Pull(ctx, p.Worker(0), img)
			p.Evidence("protected upstream: %s, running after %s", proveAuthorized(ctx, p, img), seconds(took))
		}},
		step{"a public upstream beside it gets none", func(ctx context.Context, p *scenarioRun) {
			public := p.Push(ctx, alpha)
			p.Pull(ctx, p.Worker(0), public)
			p.FetchedOnce(ctx, public, accesslog.AskerCache)
			if shown := p.Requests(ctx, public).Filter(authorized); len(shown) != 0 {
				p.Fatalf("%s was shown credentials: %+v", alpha, shown[0])
			}
		}},
		step{"bad Secrets are refused, and nothing changes", func(ctx context.Context, p *scenarioRun) {
			proveBadSecretsRefused(ctx, p, refer, caches)
		}},
		step{"rotated by a new reference", func(ctx context.Context, p *scenarioRun) {
			p.Check(registry.SetCredentials(ctx, old, current))
			refer["second"] = p.Secret(ctx, secretOf(current), nil)
			caches[2].SecretReferenceName = ptr.To("second")
			p.Configure(ctx, refer, caches...)
			p.Check(registry.SetCredentials(ctx, current))
			proveStillPulls(ctx, p, img)
			p.Evidence("new reference: old credentials revoked, pulls on")
		}},
		step{"rotated by a new Secret under the same reference", func(ctx context.Context, p *scenarioRun) {
			latest := newCredentials()
			p.Check(registry.SetCredentials(ctx, current, latest))
			refer["second"] = p.Secret(ctx, secretOf(latest), nil)
			p.Configure(ctx, refer, caches...)
			p.Check(registry.SetCredentials(ctx, latest))
			proveStillPulls(ctx, p, img)
			p.Evidence("same reference, new Secret: old credentials revoked, pulls on")
			proveSecret(ctx, p, registry, old, current, latest)
		}},
	)
}

// newCredentials have a name as robot accounts do, and a password that quoting, splitting or printing would spoil. Its
// first and last parts are letters that are found again wherever it leaks to.
func newCredentials() upstream.Credentials {
	password := rand.Text()[:12] + `'$#&:"` + " \\%s`\n\xff\xfe" + rand.Text()[:12]
	return upstream.Credentials{Username: []byte("@robot-" + rand.Text()[:12]), Password: []byte(password)}
}

func secretOf(c upstream.Credentials) map[string][]byte {
	return map[string][]byte{"username": c.Username, "password": c.Password}
}

func authorized(r accesslog.Record) bool { return r.Authorization }

// proveAsksForCredentials proves that the upstream is closed to a node that shows none.
func proveAsksForCredentials(ctx context.Context, p *scenarioRun) {
	p.Helper()
	out, err := p.Worker(0).Exec(ctx, "curl", "--silent", "--show-error", "--max-time", "10", "--output", "/dev/null",
		"--write-out", "%{http_code}", "http://"+private+"/v2/")
	p.Check(err)
	if out != "401" {
		p.Fatalf("%s answers %s without credentials, want 401: the scenario would prove nothing", private, out)
	}
}

// proveAuthorized proves that the cache fetched each blob of the image once and showed credentials for each.
func proveAuthorized(ctx context.Context, p *scenarioRun, img pushed) accesslog.Evidence {
	p.Helper()
	evidence := p.FetchedOnce(ctx, img, accesslog.AskerCache)
	served := p.Requests(ctx, img).Blobs().Gets().Filter(authorized).
		Filter(func(r accesslog.Record) bool { return r.Status == http.StatusOK })
	if len(served) != len(img.blobs) {
		p.Fatalf("%d of %d blobs were served to a client with credentials", len(served), len(img.blobs))
	}
	return evidence
}

// proveStillPulls proves that the cache fetches new images after a rotation, and has kept what it had.
func proveStillPulls(ctx context.Context, p *scenarioRun, before pushed) {
	p.Helper()
	img := p.Push(ctx, private)
	p.Pull(ctx, p.Worker(0), img)
	proveAuthorized(ctx, p, img)
	p.Pull(ctx, p.Worker(1), before)
	p.FetchedOnce(ctx, before, accesslog.AskerCache)
}
