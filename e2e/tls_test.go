//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/cachetest"
	"github.com/gardener-extensions/registry-cache/e2e/rig"
	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

// restoredWithin is the promised maximum time to restore a lost or damaged hosts.toml on a node.
const restoredWithin = 30 * time.Second

// damage is a kind of damage to hosts.toml, applied to both workers at the same time.
type damage struct {
	name string
	// scripts contains a script for each worker. The argument of a script is the path of hosts.toml.
	scripts [2]string
	// pull pulls an image after the damage.
	pull func(ctx context.Context, p *rig.Run, worker *cluster.Node, img rig.Pushed) error
	// within bounds the time until the files are restored and the images are pulled.
	within time.Duration
}

// damages lists the kinds of damage. With the second kind, every pull fails until the file is
// restored. A kubelet would retry only after 10 seconds, so pullAgain retries.
var damages = []damage{
	{"lost on one worker and empty on the other", [2]string{`rm -- "$1"`, `truncate --size=0 -- "$1"`}, pullOnce, rig.PullTimeout},
	{"garbled, certificate or name of the CA file", [2]string{`sed -i '0,/^MI/s//XX/' "$1"`, `sed -i 's/ca = "hosts/ca = "horst/' "$1"`}, pullAgain, 20 * time.Second},
}

func pullOnce(ctx context.Context, p *rig.Run, worker *cluster.Node, img rig.Pushed) error {
	_, err := rig.RunPod(ctx, p, worker, img)
	return err
}

// pullAgain makes the node's container runtime pull the image until a pull succeeds.
func pullAgain(ctx context.Context, _ *rig.Run, worker *cluster.Node, img rig.Pushed) error {
	return rig.AwaitEvery(ctx, rig.NodeInterval, worker.Name()+" has pulled "+img.Reference(), rig.PullTimeout, func(ctx context.Context) (bool, string, error) {
		_, err := rig.TimedPull(ctx, worker, img)
		return err == nil, fmt.Sprint(err), nil
	})
}

// tlsCache returns the result of cachetest.Cache, changed to HTTPS.
func tlsCache(host string) v1alpha3.RegistryCache {
	cache := cachetest.Cache(host)
	cache.HTTP = &v1alpha3.HTTP{TLS: true}
	return cache
}

// tlsOn proves that nodes pull over HTTPS from a cache that they trust, and recover from a lost or
// damaged hosts.toml.
func tlsOn() rig.Scenario {
	steps := []rig.Step{
		rig.Prove("alpha and beta are cached over HTTPS", rig.Configured(tlsCache(rig.Alpha), cachetest.Cache(rig.Beta))),
		rig.Prove("only clients with the CA from hosts.toml trust the cache", func(ctx context.Context, p *rig.Run) {
			endpoint := p.Endpoints(ctx)[rig.Alpha]
			if !strings.HasPrefix(endpoint, "https://") {
				p.Fatalf("the endpoint of alpha is %s", endpoint)
			}
			for _, worker := range p.Workers() {
				p.Check(asks(ctx, worker, "200", endpoint+"/v2/", "--cacert", rig.HostsPath(rig.Alpha)))
				p.Check(asks(ctx, worker, "exit status 60", endpoint+"/v2/"))
				withoutTLS := strings.Replace(endpoint, "https", "http", 1)
				p.Check(asks(ctx, worker, "400", withoutTLS+"/v2/"))
				healthPort := strconv.Itoa(v1alpha3.CacheDebugPort)
				p.Check(asks(ctx, worker, "200", strings.Replace(withoutTLS, ":5000", ":"+healthPort, 1)+"/debug/health"))
			}
			p.Evidence("endpoint %s, trusted by hosts.toml only", endpoint)
		}),
		rig.Prove("its images come through the cache", func(ctx context.Context, p *rig.Run) {
			for _, host := range []string{rig.Alpha, rig.Beta} {
				img := p.Push(ctx, host)
				for _, worker := range p.Workers() {
					p.TimedPull(ctx, worker, img)
				}
				p.Evidence("%s: %s", rig.Label(host), p.FetchedOnce(ctx, img, accesslog.AskerCache))
			}
		}),
	}
	for _, damage := range damages {
		steps = append(steps, rig.Prove("hosts.toml is "+damage.name, func(ctx context.Context, p *rig.Run) {
			proveRestored(ctx, p, damage)
		}))
	}
	return rig.New("tls", steps...)
}

// asks runs curl on a node. It returns an error unless the HTTP status or curl's error contains the
// wanted text.
func asks(ctx context.Context, worker *cluster.Node, want, url string, arguments ...string) error {
	argv := append([]string{"curl", "--silent", "--max-time", "10", "--output", "/dev/null", "--write-out", "%{http_code}"}, arguments...)
	out, err := worker.Exec(ctx, append(argv, url)...)
	if err != nil {
		out = err.Error()
	}
	if !strings.Contains(out, want) {
		return fmt.Errorf("%s got %q from %s with %v, want %s", worker.Name(), out, url, arguments, want)
	}
	return nil
}

// damagedWorker describes a worker on which alpha's hosts.toml has been damaged, and the pull that
// was started afterwards. The pull must succeed.
type damagedWorker struct {
	worker *cluster.Node
	before string
	// since is the time of the damage, in seconds since 1970.
	since string
	pull  *rig.Background
}

// proveRestored damages alpha's hosts.toml on both workers and proves that pulls succeed
// nevertheless, that the files are restored in time, and that the journals report the restoration.
func proveRestored(ctx context.Context, p *rig.Run, damage damage) {
	p.Helper()
	images := []rig.Pushed{p.Push(ctx, rig.Alpha), p.Push(ctx, rig.Alpha)}
	start := time.Now()
	nodes := []damagedWorker{}
	for i := range damage.scripts {
		nodes = append(nodes, damage.inflict(ctx, p, i, images[i]))
	}
	p.Await(ctx, "alpha's hosts.toml is restored on both workers", min(restoredWithin, damage.within), func(ctx context.Context) (bool, string, error) {
		for _, node := range nodes {
			if now, err := rig.ReadFile(ctx, node.worker, rig.HostsPath(rig.Alpha)); now != node.before || err != nil {
				return false, node.worker.Name() + ": " + now, err
			}
		}
		return true, "", nil
	})
	took := time.Since(start)
	for _, node := range nodes {
		p.Join(ctx, node.pull, "an image of alpha is pulled on "+node.worker.Name(), time.Until(start.Add(damage.within)))
		journal, err := node.worker.Exec(ctx, "journalctl", "--unit", nodeconfig.UnitName, "--output", "cat", "--since", "@"+node.since)
		p.Check(err)
		if !strings.Contains(journal, rig.HostsPath(rig.Alpha)+" was lost or changed, restored it") {
			p.Fatalf("the journal of %s does not report the restoration:\n%s", node.worker.Name(), journal)
		}
	}
	p.Evidence("restored after %s, images pulled", rig.Seconds(took))
}

// damageScript fails unless the damage changed the file.
const damageScript = `date +%%s
before=$(sha256sum -- "$1")
%s
[ "$(sha256sum -- "$1" 2>/dev/null)" != "$before" ] || { echo "the damage changed nothing" >&2; exit 1; }`

// inflict damages alpha's hosts.toml on the i-th worker, starts a pull on that worker, and returns
// both.
func (d damage) inflict(ctx context.Context, p *rig.Run, i int, img rig.Pushed) damagedWorker {
	p.Helper()
	worker := p.Worker(i)
	node := damagedWorker{worker: worker, before: p.Hosts(ctx, worker, rig.Alpha)}
	since, err := worker.Script(ctx, fmt.Sprintf(damageScript, d.scripts[i]), rig.HostsPath(rig.Alpha))
	p.Check(err)
	node.since = strings.TrimSpace(since)
	node.pull = p.Background(ctx, func(ctx context.Context) error { return d.pull(ctx, p, worker, img) })
	return node
}
