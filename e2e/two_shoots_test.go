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
	"github.com/gardener-extensions/registry-cache/e2e/timeline"
	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

// twoShoots proves that shoots on one seed do not meet: what happens to the one does not touch the other.
func twoShoots() scenario {
	var (
		second       another
		first, nodes string
		daemons      *timeline.Recording
		img          pushed
	)
	untouched := func(ctx context.Context, p *scenarioRun) {
		p.Unchanged(ctx, p.suite.shoot, first)
		if now := stateOfCaches(ctx, p); now != nodes {
			p.Fatalf("caches or nodes of the first shoot changed:\nbefore:\n%s\nafter:\n%s", nodes, now)
		}
	}
	return newScenario("two-shoots",
		step{"the first shoot has caches for alpha and beta", func(ctx context.Context, p *scenarioRun) {
			cached(alpha, beta)(ctx, p)
			img = p.Push(ctx, alpha)
			p.TimedPull(ctx, p.Worker(0), img)
			p.FetchedOnce(ctx, img, accesslog.AskerCache)
			first, nodes = p.Identities(ctx, p.suite.shoot), stateOfCaches(ctx, p)
			daemons = p.Record(ctx, p.suite.shoot, appsv1.SchemeGroupVersion.WithResource("daemonsets"), metav1.NamespaceSystem)
		}},
		step{"a second one gets caches for the same upstreams, which are others", func(ctx context.Context, p *scenarioRun) {
			second = p.Another(ctx, "second")
			p.ReconcileOther(ctx, second, alpha, beta)
			p.AwaitCachesIn(ctx, p.suite.seed, alpha, beta)
			for _, cache := range statusOf(ctx, p, second).Caches {
				if cache.Upstream != beta {
					continue // it would fetch the image
				}
				proveAnswers(ctx, p, p.suite.testbed.Seed.ControlPlane(), cache.Endpoint)
				if got := p.BlobStatus(ctx, p.suite.testbed.Seed.ControlPlane(), cache.Endpoint, img); got != http.StatusNotFound {
					p.Fatalf("the second shoot's cache of beta answers %d for an image of alpha", got)
				}
			}
			untouched(ctx, p)
			p.Evidence("both have caches for alpha and beta")
		}},
		step{"alpha is removed from the second: the first still has it", func(ctx context.Context, p *scenarioRun) {
			p.ReconcileOther(ctx, second, beta)
			p.AwaitCachesIn(ctx, p.suite.seed, beta)
			untouched(ctx, p)
			proveNoCleanerIn(ctx, p, daemons)
			p.Evidence("alpha removed from the second only")
		}},
		step{"the second is deleted: the first still works", func(ctx context.Context, p *scenarioRun) {
			object, err := second.withCaches(beta)
			p.Check(err)
			p.Check(second.Delete(ctx, object))
			p.Gone(ctx, p.suite.seed, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: second.namespace}})
			p.AwaitCachesIn(ctx, p.suite.seed)
			untouched(ctx, p)
			p.TimedPull(ctx, p.Worker(1), img)
			p.Evidence("second deleted, first still a hit: %s", p.FetchedOnce(ctx, img, accesslog.AskerCache))
		}},
	)
}

// ReconcileOther lets gardenlet bring the shoot to the state with exactly these upstreams cached.
func (p *scenarioRun) ReconcileOther(ctx context.Context, shoot another, hosts ...string) {
	p.Helper()
	object, err := shoot.withCaches(hosts...)
	p.Check(err)
	if err := shoot.Reconcile(ctx, object); err != nil {
		p.Fatalf("reconcile the shoot %s with caches for %v: %v", shoot.Name, hosts, err)
	}
}

// statusOf returns the Extension's providerStatus of the shoot.
func statusOf(ctx context.Context, p *scenarioRun, shoot another) *v1alpha3.RegistryStatus {
	p.Helper()
	extension, err := shoot.extension(ctx, p)
	p.Check(err)
	if extension.Status.ProviderStatus == nil {
		p.Fatalf("the Extension of the shoot %s has no providerStatus", shoot.Name)
	}
	status, err := v1alpha3.DecodeStatus(extension.Status.ProviderStatus.Raw)
	p.Check(err)
	return status
}

// proveNoCleanerIn proves that since the recording began no cleaner was in the first shoot.
func proveNoCleanerIn(ctx context.Context, p *scenarioRun, daemons *timeline.Recording) {
	p.Helper()
	fence := daemonSetFence()
	fence.SetNamespace(metav1.NamespaceSystem)
	events := raiseFence(ctx, p, daemons, p.suite.shoot, fence)
	for _, event := range events {
		if name := event.Object.GetName(); strings.Contains(name, "cleaner") {
			p.Fatalf("%s was in the first shoot: %s", name, event.Type)
		}
	}
}

// proveAnswers proves that a cache answers a node. A pod that is ready is behind its Service a moment later.
func proveAnswers(ctx context.Context, p *scenarioRun, node *cluster.Node, endpoint string) {
	p.Helper()
	p.Await(ctx, endpoint+" answers", 15*time.Second, func(ctx context.Context) (bool, string, error) {
		_, err := node.Exec(ctx, "curl", "--silent", "--show-error", "--fail", "--max-time", "3", "--output", "/dev/null", endpoint+"/v2/")
		return err == nil, fmt.Sprint(err), nil
	})
}
