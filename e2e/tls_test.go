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

// damages are what may happen to a hosts.toml at the same time, one on each worker, as scripts whose argument is the file. By
// the last two containerd fails every pull until it is restored.
var damages = []struct {
	name    string
	scripts [2]string
}{
	{"lost on one worker and empty on the other", [2]string{`rm -- "$1"`, `truncate --size=0 -- "$1"`}},
	{"garbled, certificate or name of the CA file", [2]string{`sed -i '0,/^MI/s//XX/' "$1"`, `sed -i 's/ca = "hosts/ca = "horst/' "$1"`}},
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
	for _, damage := range damages {
		steps = append(steps, step{"hosts.toml is " + damage.name, func(ctx context.Context, p *proof) {
			proveRestored(ctx, p, damage.scripts)
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

// damaged is a worker whose hosts.toml of alpha was damaged, and a pod there whose image has to come nevertheless.
type damaged struct {
	worker *cluster.Node
	before string
	// since is when it was damaged, in seconds since 1970.
	since string
	pod   *background
}

// proveRestored damages alpha's hosts.toml on both workers and proves that a pod gets its image there nevertheless, that the
// files are as before in time, and that the journals say so.
func proveRestored(ctx context.Context, p *proof, scripts [2]string) {
	p.Helper()
	images := []pushed{p.Push(ctx, alpha), p.Push(ctx, alpha)}
	start := time.Now()
	nodes := []damaged{}
	for i, script := range scripts {
		nodes = append(nodes, damage(ctx, p, p.Worker(i), script, images[i]))
	}
	p.Await(ctx, "alpha's hosts.toml is restored on both workers", restoredWithin, func(ctx context.Context) (bool, string, error) {
		for _, node := range nodes {
			if now, err := readFile(ctx, node.worker, hostsPath(alpha)); now != node.before || err != nil {
				return false, node.worker.Name() + ": " + now, err
			}
		}
		return true, "", nil
	})
	took := time.Since(start)
	for _, node := range nodes {
		p.Join(ctx, node.pod, "a pod with an image of alpha runs on "+node.worker.Name(), pullTimeout)
		journal, err := node.worker.Exec(ctx, "journalctl", "--unit", unitName, "--output", "cat", "--since", "@"+node.since)
		p.Check(err)
		if !strings.Contains(journal, hostsPath(alpha)+" is lost or changed, restoring it") {
			p.Fatalf("the journal of %s does not say so:\n%s", node.worker.Name(), journal)
		}
	}
	p.Evidence("restored after %s, the pods run", seconds(took))
}

// damageScript proves that the damage changed the file before anybody could restore it.
const damageScript = `date +%%s
before=$(sha256sum -- "$1")
%s
[ "$(sha256sum -- "$1" 2>/dev/null)" != "$before" ] || { echo "the damage changed nothing" >&2; exit 1; }`

// damage damages alpha's hosts.toml on the worker and starts a pod there.
func damage(ctx context.Context, p *proof, worker *cluster.Node, script string, img pushed) damaged {
	p.Helper()
	node := damaged{worker: worker, before: p.Hosts(ctx, worker, alpha)}
	since, err := worker.Script(ctx, fmt.Sprintf(damageScript, script), hostsPath(alpha))
	p.Check(err)
	node.since = strings.TrimSpace(since)
	node.pod = p.Background(ctx, func(ctx context.Context) error { _, err := pull(ctx, worker, img); return err })
	return node
}
