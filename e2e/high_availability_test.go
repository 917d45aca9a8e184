//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gardener/gardener/pkg/utils/kubernetes/health"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/kind/operate"
	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

// highAvailability proves that a cache with two instances serves while a node is drained, and that the second one goes when
// it is no longer wanted.
func highAvailability() scenario {
	var pods []corev1.Pod
	cache := operate.CacheOf(alpha)
	cache.HighAvailability = &v1alpha3.HighAvailability{Enabled: true}
	return newScenario("high-availability",
		step{"alpha has two instances, on two nodes", func(ctx context.Context, p *scenarioRun) {
			p.AwaitWorkers(ctx) // a scenario before may have had one of them down
			configured(cache, operate.CacheOf(beta))(ctx, p)
			pods = p.CachePods(ctx, alpha)
			if len(pods) != 2 || pods[0].Spec.NodeName == pods[1].Spec.NodeName {
				p.Fatalf("want two pods on two nodes, there are:%s", placement(pods))
			}
		}},
		step{"while one node is drained, the other one is not", func(ctx context.Context, p *scenarioRun) {
			p.AwaitBudget(ctx, pods[0])
			p.Afterwards(ctx, func(ctx context.Context) error { return uncordonWorkers(ctx, p) })
			p.Check(cordon(ctx, p, pods[0].Spec.NodeName, true))
			p.Check(evict(ctx, p, pods[0]))
			p.RefusesEviction(ctx, pods[1])
			p.Await(ctx, pods[0].Name+" waits for its node", 30*time.Second, func(ctx context.Context) (bool, string, error) {
				now, err := cachePods(ctx, p, alpha)
				waits := slices.ContainsFunc(now, func(pod corev1.Pod) bool {
					return pod.Name == pods[0].Name && pod.UID != pods[0].UID && pod.Spec.NodeName == ""
				})
				return waits, placement(now), err
			})
			p.RefusesEviction(ctx, pods[1])
			p.Evidence("one evicted, the eviction of the other refused")
		}},
		step{"the other instance serves both nodes", func(ctx context.Context, p *scenarioRun) {
			p.Evidence("drained: %s", p.CachedEverywhere(ctx, alpha))
		}},
		step{"without high availability one instance serves, and there is no budget", func(ctx context.Context, p *scenarioRun) {
			p.Check(uncordonWorkers(ctx, p))
			cached(alpha, beta)(ctx, p)
			p.Await(ctx, "alpha has one instance", 30*time.Second, func(ctx context.Context) (bool, string, error) {
				now, err := cachePods(ctx, p, alpha)
				return len(now) == 1, placement(now), err
			})
			p.Gone(ctx, p.suite.shoot, budgetOf(pods[0]))
			p.Evidence("switched off: %s", p.CachedEverywhere(ctx, alpha))
		}},
	)
}

// AwaitWorkers waits until every worker takes pods: it is ready, and no taint is left of the time when it was not.
func (p *scenarioRun) AwaitWorkers(ctx context.Context) {
	p.Helper()
	p.Await(ctx, "every worker takes pods", time.Minute, func(ctx context.Context) (bool, string, error) {
		for _, worker := range p.Workers() {
			node := &corev1.Node{}
			if err := p.suite.shoot.Get(ctx, client.ObjectKey{Name: worker.Name()}, node); err != nil {
				return false, worker.Name() + " is not there", client.IgnoreNotFound(err)
			}
			unhealthy := health.CheckNode(node)
			if len(node.Spec.Taints) > 0 || node.Spec.Unschedulable || unhealthy != nil {
				state := fmt.Sprintf("%s: taints %v, unschedulable %t, %v", node.Name, node.Spec.Taints, node.Spec.Unschedulable, unhealthy)
				return false, state, nil
			}
		}
		return true, "", nil
	})
}

// CachedEverywhere pulls a new image on every worker and proves that the cache fetched it, once, and no node did.
func (p *scenarioRun) CachedEverywhere(ctx context.Context, host string) accesslog.Evidence {
	p.Helper()
	img := p.Push(ctx, host)
	for _, worker := range p.Workers() {
		p.TimedPull(ctx, worker, img)
	}
	return p.FetchedOnce(ctx, img, accesslog.AskerCache)
}

// CachePods returns the pods of an upstream's cache, by name.
func (p *scenarioRun) CachePods(ctx context.Context, host string) []corev1.Pod {
	p.Helper()
	pods, err := cachePods(ctx, p, host)
	p.Check(err)
	return pods
}

func cachePods(ctx context.Context, p *scenarioRun, host string) ([]corev1.Pod, error) {
	pods := &corev1.PodList{}
	if err := p.suite.shoot.List(ctx, pods, client.InNamespace(metav1.NamespaceSystem), client.MatchingLabels{upstreamHostLabel: host}); err != nil {
		return nil, fmt.Errorf("list the pods of the cache of %s: %w", host, err)
	}
	slices.SortFunc(pods.Items, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return pods.Items, nil
}

func placement(pods []corev1.Pod) string {
	var text strings.Builder
	for _, pod := range pods {
		fmt.Fprintf(&text, " %s (%s) on %q", pod.Name, pod.Status.Phase, pod.Spec.NodeName)
	}
	return text.String()
}

// budgetOf names the PodDisruptionBudget of the cache that the pod is of.
func budgetOf(pod corev1.Pod) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Labels["app"]}}
}

// AwaitBudget waits until the budget of the cache knows of both instances: until then no eviction is allowed.
func (p *scenarioRun) AwaitBudget(ctx context.Context, pod corev1.Pod) {
	p.Helper()
	budget := budgetOf(pod)
	p.Await(ctx, "the budget counts both instances", 30*time.Second, func(ctx context.Context) (bool, string, error) {
		err := p.suite.shoot.Get(ctx, client.ObjectKeyFromObject(budget), budget)
		status := budget.Status
		return status.ObservedGeneration == budget.Generation && status.CurrentHealthy == 2, fmt.Sprintf("%+v", status), err
	})
}

// evict is what a drain does with each pod.
func evict(ctx context.Context, p *scenarioRun, pod corev1.Pod) error {
	if err := p.suite.shoot.SubResource("eviction").Create(ctx, &pod, &policyv1.Eviction{}); err != nil {
		return fmt.Errorf("evict %s: %w", pod.Name, err)
	}
	return nil
}

// RefusesEviction proves that the budget keeps the pod from being evicted.
func (p *scenarioRun) RefusesEviction(ctx context.Context, pod corev1.Pod) {
	p.Helper()
	if err := evict(ctx, p, pod); !apierrors.IsTooManyRequests(err) || !apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause) {
		p.Fatalf("the eviction of %s was not refused by its budget: %v", pod.Name, err)
	}
}

func cordon(ctx context.Context, p *scenarioRun, node string, unschedulable bool) error {
	object := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}
	patch := client.RawPatch(client.Merge.Type(), fmt.Appendf(nil, `{"spec":{"unschedulable":%t}}`, unschedulable))
	if err := p.suite.shoot.Patch(ctx, object, patch); err != nil {
		return fmt.Errorf("set unschedulable of %s to %t: %w", node, unschedulable, err)
	}
	return nil
}

// uncordonWorkers lets the workers take pods again, where there is one that does not.
func uncordonWorkers(ctx context.Context, p *scenarioRun) error {
	nodes := &corev1.NodeList{}
	if err := p.suite.shoot.List(ctx, nodes); err != nil {
		return fmt.Errorf("list the nodes: %w", err)
	}
	for _, node := range nodes.Items {
		if node.Spec.Unschedulable {
			if err := cordon(ctx, p, node.Name, false); err != nil {
				return err
			}
		}
	}
	return nil
}
