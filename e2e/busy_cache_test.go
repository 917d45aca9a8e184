//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/gardener-extensions/registry-cache/e2e/rig"
	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

const (
	busyLayerBytes = 8 << 20
	// busyRate makes the pull take half a minute, which is enough time for the node to notice that the
	// cache accepts no connections.
	busyRate = "256Ki"
	// busyArrived is the number of bytes of the layer after which the config, which is fetched at the
	// same time, has arrived as well. From then on the pull needs no new connection.
	busyArrived = 512 << 10

	// arrivedScript prints how many bytes of a blob containerd has fetched so far.
	arrivedScript = `
cd /var/lib/containerd/io.containerd.content.v1.content/ingest
for ref in $(grep -lsF -- "$1" */ref || true); do
  cat -- "${ref%/ref}/data"
done | wc -c`

	// newConnections drops the first packet of each new connection to the cache, before kube-proxy's
	// rules apply. Open connections continue. So the cache seems too busy to accept connections.
	newConnections = `
nft -f - <<END
table inet ` + rig.BusyTable + `
delete table inet ` + rig.BusyTable + `
table inet ` + rig.BusyTable + ` {
  chain output {
    type filter hook output priority raw;
    ip daddr $1 tcp dport { 5000, 5001 } tcp flags & (syn | ack) == syn drop
  }
}
END`
)

// busyCache proves that a cache that is too busy for new connections finishes the pulls that it
// already serves: nodes no longer use it for new pulls, but do not reset a connection that still
// receives bytes.
func busyCache() rig.Scenario {
	var (
		worker *cluster.Node
		img    rig.Pushed
		pull   *rig.Background
	)
	return rig.New("busy-cache",
		rig.Prove("a worker pulls a large image slowly through alpha's cache", func(ctx context.Context, p *rig.Run) {
			rig.Cached(rig.Alpha)(ctx, p)
			worker = workerBeside(ctx, p, rig.Alpha)
			p.BreakWith(ctx, "upstream/"+rig.Label(rig.Alpha), spec.Slow, map[string][]string{"rate": {busyRate}})
			img = p.PushLayers(ctx, rig.Alpha, 1, busyLayerBytes)
			pull = p.Background(ctx, func(ctx context.Context) error {
				_, err := rig.TimedPull(ctx, worker, img)
				return err
			})
			layer := img.Blobs[len(img.Blobs)-1]
			p.Check(rig.AwaitEvery(ctx, rig.NodeInterval, "the worker gets the layer", 20*time.Second, func(ctx context.Context) (bool, string, error) {
				if err := pull.Failed(); err != nil {
					return false, "", err
				}
				out, err := worker.Script(ctx, arrivedScript, layer)
				if err != nil {
					return false, "", err
				}
				arrived, err := strconv.Atoi(strings.TrimSpace(out))
				return arrived >= busyArrived, fmt.Sprintf("%d bytes have arrived", arrived), err
			}))
		}),

		rig.Prove("the cache accepts no more connections, and the worker bypasses it for new pulls", func(ctx context.Context, p *rig.Run) {
			p.Afterwards(ctx, func(ctx context.Context) error { _, err := worker.Script(ctx, rig.UndoScript); return err })
			_, err := worker.Script(ctx, newConnections, clusterIPOf(ctx, p))
			p.Check(err)
			p.Check(rig.AwaitEvery(ctx, rig.NodeInterval, "the worker does not ask the cache of "+rig.Alpha, rig.NoticedTimeout,
				func(ctx context.Context) (bool, string, error) {
					content, err := rig.ReadFile(ctx, worker, rig.HostsPath(rig.Alpha))
					return !strings.Contains(content, "[host."), content, err
				}))
			select {
			case <-pull.Ended:
				p.Check(pull.Err)
				p.Fatalf("the pull ended before, so this proves nothing")
			default:
			}
		}),

		rig.Prove("the running pull through the cache succeeds", func(ctx context.Context, p *rig.Run) {
			p.Join(ctx, pull, "the pull has ended", rig.PullTimeout)
			p.Evidence("busy cache: %s", p.FetchedOnce(ctx, img, accesslog.AskerCache))
			_, err := worker.Script(ctx, rig.UndoScript)
			p.Check(err)
			p.AwaitMirrors(ctx, rig.Alpha)
		}),
	)
}

// clusterIPOf returns the cluster IP of alpha's cache.
func clusterIPOf(ctx context.Context, p *rig.Run) string {
	p.Helper()
	endpoint, err := url.Parse(p.Endpoints(ctx)[rig.Alpha])
	p.Check(err)
	return endpoint.Hostname()
}
