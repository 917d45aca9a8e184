//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/e2e/rig"
	"github.com/gardener-extensions/registry-cache/e2e/timeline"
	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

// twoShoots proves that shoots on one seed are independent: changes to one do not affect the other.
func twoShoots() rig.Scenario {
	var (
		second       rig.SecondShoot
		first, nodes string
		daemons      *timeline.Recording
		img          rig.Pushed
	)
	untouched := func(ctx context.Context, p *rig.Run) {
		p.Unchanged(ctx, p.Session.Shoot, first)
		if now := stateOfCaches(ctx, p); now != nodes {
			p.Fatalf("caches or nodes of the first shoot changed:\nbefore:\n%s\nafter:\n%s", nodes, now)
		}
	}
	return rig.New("two-shoots",
		rig.Prove("the first shoot has caches for alpha and beta", func(ctx context.Context, p *rig.Run) {
			rig.Cached(rig.Alpha, rig.Beta)(ctx, p)
			img = p.Push(ctx, rig.Alpha)
			p.TimedPull(ctx, p.Worker(0), img)
			p.FetchedOnce(ctx, img, accesslog.AskerCache)
			first, nodes = p.Identities(ctx, p.Session.Shoot), stateOfCaches(ctx, p)
			daemons = p.Record(ctx, p.Session.Shoot, appsv1.SchemeGroupVersion.WithResource("daemonsets"), metav1.NamespaceSystem)
		}),

		rig.Prove("a second shoot gets its own caches for the same upstreams", func(ctx context.Context, p *rig.Run) {
			second = p.SecondShoot(ctx, "second")
			reconcileOther(ctx, p, second, rig.Alpha, rig.Beta)
			p.AwaitCachesIn(ctx, p.Session.Seed, rig.Alpha, rig.Beta)
			for _, cache := range statusOf(ctx, p, second).Caches {
				if cache.Upstream != rig.Beta {
					continue
				}
				proveAnswers(ctx, p, p.Session.Testbed.Seed.ControlPlane(), cache.Endpoint)
				if got := p.BlobStatus(ctx, p.Session.Testbed.Seed.ControlPlane(), cache.Endpoint, img); got != http.StatusNotFound {
					p.Fatalf("the second shoot's cache of beta answers %d for an image of alpha", got)
				}
			}
			untouched(ctx, p)
			p.Evidence("both have caches for alpha and beta")
		}),

		rig.Prove("alpha is removed from the second shoot: the first still has it", func(ctx context.Context, p *rig.Run) {
			reconcileOther(ctx, p, second, rig.Beta)
			p.AwaitCachesIn(ctx, p.Session.Seed, rig.Beta)
			untouched(ctx, p)
			proveNoCleanerIn(ctx, p, daemons)
			p.Evidence("alpha removed from the second only")
		}),

		rig.Prove("the second shoot is deleted: the first still works", func(ctx context.Context, p *rig.Run) {
			object, err := second.WithCaches(rig.Beta)
			p.Check(err)
			p.Check(second.Delete(ctx, object))
			p.Gone(ctx, p.Session.Seed, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: second.Namespace}})
			p.AwaitCachesIn(ctx, p.Session.Seed)
			untouched(ctx, p)
			p.TimedPull(ctx, p.Worker(1), img)
			p.Evidence("second deleted, first still a hit: %s", p.FetchedOnce(ctx, img, accesslog.AskerCache))
		}),
	)
}

// reconcileOther makes gardenlet reconcile the second shoot with caches for exactly these
// upstreams.
func reconcileOther(ctx context.Context, p *rig.Run, shoot rig.SecondShoot, hosts ...string) {
	p.Helper()
	object, err := shoot.WithCaches(hosts...)
	p.Check(err)
	if err := shoot.Reconcile(ctx, object); err != nil {
		p.Fatalf("reconcile the shoot %s with caches for %v: %v", shoot.Name, hosts, err)
	}
}

// statusOf returns the providerStatus of the shoot's Extension.
func statusOf(ctx context.Context, p *rig.Run, shoot rig.SecondShoot) *v1alpha3.RegistryStatus {
	p.Helper()
	extension, err := shoot.Extension(ctx, p)
	p.Check(err)
	if extension.Status.ProviderStatus == nil {
		p.Fatalf("the Extension of the shoot %s has no providerStatus", shoot.Name)
	}
	status, err := v1alpha3.DecodeStatus(extension.Status.ProviderStatus.Raw)
	p.Check(err)
	return status
}

// proveNoCleanerIn proves that the first shoot has had no cleaner since the recording began.
func proveNoCleanerIn(ctx context.Context, p *rig.Run, daemons *timeline.Recording) {
	p.Helper()
	fence := rig.DaemonSetFence()
	fence.SetNamespace(metav1.NamespaceSystem)
	events := rig.RaiseFence(ctx, p, daemons, p.Session.Shoot, fence)
	for _, event := range events {
		if name := event.Object.GetName(); strings.Contains(name, "cleaner") {
			p.Fatalf("%s was in the first shoot: %s", name, event.Type)
		}
	}
}

// proveAnswers proves that a cache answers a node. The answer may take a moment, because kube-proxy
// updates the node some time after a pod is ready.
func proveAnswers(ctx context.Context, p *rig.Run, node *cluster.Node, endpoint string) {
	p.Helper()
	p.Await(ctx, endpoint+" answers", 15*time.Second, func(ctx context.Context) (bool, string, error) {
		_, err := node.Exec(ctx, "curl", "--silent", "--show-error", "--fail", "--max-time", "3", "--output", "/dev/null", endpoint+"/v2/")
		return err == nil, fmt.Sprint(err), nil
	})
}
