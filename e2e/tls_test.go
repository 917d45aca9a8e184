//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"time"

	"sigs.k8s.io/e2e-framework/pkg/features"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

// restoredWithin is the promise for a file of ours that got lost or damaged on a node.
const restoredWithin = 30 * time.Second

// damages are what may happen to a hosts.toml, as a script whose argument is the file. By the last two containerd fails
// every pull until it is restored.
var damages = []struct{ name, script string }{
	{"lost", `rm -- "$1"`},
	{"emptied", `truncate --size=0 -- "$1"`},
	{"the certificate garbled", `sed -i '0,/^MI/s//XX/' "$1"`},
	{"the name of the CA file garbled", `sed -i 's/ca = "hosts/ca = "horst/' "$1"`},
}

// tlsCache is kind.CacheOf with HTTPS.
func tlsCache(host string) v1alpha3.RegistryCache {
	cache := kind.CacheOf(host)
	cache.HTTP = &v1alpha3.HTTP{TLS: true}
	return cache
}

// tlsOn proves that nodes pull by HTTPS from a cache that they trust, and that a lost or damaged file on a node fails no
// pull for good.
func tlsOn() features.Feature {
	steps := []step{
		{"alpha is cached by HTTPS, beta is not", configured(tlsCache(alpha), kind.CacheOf(beta))},
		{"only who has the authority from hosts.toml trusts the cache", func(ctx context.Context, p *proof) {
			endpoint := p.Endpoints(ctx)[alpha]
			if !strings.HasPrefix(endpoint, "https://") {
				p.Fatalf("the endpoint of alpha is %s", endpoint)
			}
			for _, worker := range p.Workers() {
				p.Check(asks(ctx, worker, "200", endpoint, "--cacert", hostsPath(alpha)))
				p.Check(asks(ctx, worker, "exit status 60", endpoint))
				p.Check(asks(ctx, worker, "400", strings.Replace(endpoint, "https", "http", 1)))
			}
			p.Evidence("endpoint %s, trusted by hosts.toml only", endpoint)
		}},
		{"its images come through the cache", func(ctx context.Context, p *proof) {
			for _, host := range []string{alpha, beta} {
				img := p.Push(ctx, host)
				for _, worker := range p.Workers() {
					p.Pull(ctx, worker, img)
				}
				p.Evidence("%s: %s", label(host), p.FetchedOnce(ctx, img, accesslog.AskerCache))
			}
		}},
	}
	for i, damage := range damages {
		steps = append(steps, step{"hosts.toml is " + damage.name, func(ctx context.Context, p *proof) {
			proveRestored(ctx, p, p.Worker(i%len(p.Workers())), damage.script)
		}})
	}
	return scenario("tls", steps...)
}

// asks proves what curl gets from an endpoint on a node: a status of HTTP, or an error of curl.
func asks(ctx context.Context, worker *cluster.Node, want, endpoint string, arguments ...string) error {
	argv := append([]string{"curl", "--silent", "--max-time", "10", "--output", "/dev/null", "--write-out", "%{http_code}"}, arguments...)
	out, err := worker.Exec(ctx, append(argv, endpoint+"/v2/")...)
	if err != nil {
		out = err.Error()
	}
	if !strings.Contains(out, want) {
		return fmt.Errorf("%s got %q from %s with %v, want %s", worker.Name(), out, endpoint, arguments, want)
	}
	return nil
}

// proveRestored damages alpha's hosts.toml on the worker and proves that a pod gets its image nevertheless, that the file
// is as before in time, and that the journal says so.
func proveRestored(ctx context.Context, p *proof, worker *cluster.Node, damage string) {
	p.Helper()
	before := p.Hosts(ctx, worker, alpha)
	_, err := worker.Script(ctx, damage, hostsPath(alpha))
	p.Check(err)
	start := time.Now()
	if p.Hosts(ctx, worker, alpha) == before {
		p.Fatalf("the damage changed nothing")
	}
	img := p.Push(ctx, alpha)
	pulls := p.Background(ctx, func(ctx context.Context) error { _, err := pull(ctx, worker, img); return err })
	p.Await(ctx, "alpha's hosts.toml on "+worker.Name()+" is restored", restoredWithin, func(ctx context.Context) (bool, string, error) {
		now, err := readFile(ctx, worker, hostsPath(alpha))
		return now == before, now, err
	})
	took := time.Since(start)
	p.Join(ctx, pulls, "a pod with an image of alpha runs on "+worker.Name(), pullTimeout)
	journal, err := worker.Exec(ctx, "journalctl", "--unit", unitName, "--output", "cat", "--since", "-2min")
	p.Check(err)
	if !strings.Contains(journal, hostsPath(alpha)+" is lost or changed, restoring it") {
		p.Fatalf("the journal does not say so:\n%s", journal)
	}
	p.Evidence("restored after %s, the pod runs", seconds(took))
}
