//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/gardener/gardener/pkg/utils/kubernetes/health"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/e2e/rig"
	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

const (
	// maxRestart is how long a recreated cache pod may take to be ready, even if its upstream hangs.
	maxRestart = 30 * time.Second
	// maxStoredPull bounds a pull of a stored image while the upstream hangs. The time includes one
	// request for the tag, which times out after five seconds.
	maxStoredPull = 10 * time.Second
)

// upstreamDown proves that a cache can start while its upstream hangs (distribution#4038). The
// cache then serves stored images by tag, and fetches new images once the upstream answers again.
func upstreamDown() rig.Scenario {
	var stored rig.Pushed
	return rig.New("upstream-down",
		rig.Prove("alpha is cached, and an image is stored", func(ctx context.Context, p *rig.Run) {
			rig.Cached(rig.Alpha, rig.Beta)(ctx, p)
			stored = p.Push(ctx, rig.Alpha)
			p.TimedPull(ctx, p.Worker(0), stored)
			p.FetchedOnce(ctx, stored, accesslog.AskerCache)
		}),

		rig.Prove("alpha hangs, and its cache restarts", func(ctx context.Context, p *rig.Run) {
			p.Break(ctx, "upstream/"+rig.Alpha, spec.Hang)
			pod := podOf(ctx, p, rig.Alpha)
			start := time.Now()
			p.Check(p.Session.Shoot.Delete(ctx, pod, client.GracePeriodSeconds(0)))
			p.Await(ctx, "another pod is ready", maxRestart, func(ctx context.Context) (bool, string, error) {
				now := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}
				err := p.Session.Shoot.Get(ctx, client.ObjectKeyFromObject(now), now)
				return now.UID != pod.UID && health.IsPodReady(now), rig.PodState(now), client.IgnoreNotFound(err)
			})
			p.AwaitMirrors(ctx, rig.Alpha, rig.Beta)
			p.Evidence("pod ready after %s while the upstream hangs", rig.Seconds(time.Since(start)))
		}),

		rig.Prove("another node pulls the stored image by its tag, in time", func(ctx context.Context, p *rig.Run) {
			took := p.TimedPull(ctx, p.Worker(1), stored)
			if took > maxStoredPull {
				p.Fatalf("the pull took %s, want at most %s", rig.Seconds(took), maxStoredPull)
			}
			p.Evidence("still a hit, in %s: %s", rig.Seconds(took), p.FetchedOnce(ctx, stored, accesslog.AskerCache))
		}),

		rig.Prove("the upstream is back, and a new image comes through the cache", func(ctx context.Context, p *rig.Run) {
			p.Check(rig.ClearFaults(ctx, p))
			img, endpoint := p.Push(ctx, rig.Alpha), p.Endpoints(ctx)[rig.Alpha]
			url := fmt.Sprintf("%s/v2/%s/manifests/latest", endpoint, img.Repository)
			p.Await(ctx, "the cache has the manifest of a new image", maxRestart, func(ctx context.Context) (bool, string, error) {
				out, err := p.Worker(0).Exec(ctx, "curl", "--silent", "--show-error", "--max-time", "10", "--output", "/dev/null",
					"--header", "Accept: application/vnd.oci.image.manifest.v1+json", "--write-out", "%{http_code}", url)
				return strings.TrimSpace(out) == "200", out, err
			})
			p.TimedPull(ctx, p.Worker(0), img)
			p.Evidence("afterwards: %s", p.FetchedOnce(ctx, img, accesslog.AskerCache))
		}),
	)
}
