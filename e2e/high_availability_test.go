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
	"github.com/gardener-extensions/registry-cache/cachetest"
	"github.com/gardener-extensions/registry-cache/e2e/rig"
	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

// highAvailability proves that a cache with two instances serves while a node is being drained, and
// that the second instance is removed with its volume when it is no longer configured.
func highAvailability() rig.Scenario {
	var pods []corev1.Pod
	cache := cachetest.Cache(rig.Alpha)
	cache.HighAvailability = &v1alpha3.HighAvailability{Enabled: true}
	return rig.New("high-availability",
		rig.Prove("alpha has two instances, on two nodes", func(ctx context.Context, p *rig.Run) {
			awaitWorkers(ctx, p)
			rig.Configured(cache, cachetest.Cache(rig.Beta))(ctx, p)
			pods = twoCachePods(ctx, p, rig.Alpha)
			if len(pods) != 2 || pods[0].Spec.NodeName == pods[1].Spec.NodeName {
				p.Fatalf("want two pods on two nodes, got:%s", placement(pods))
			}
		}),

		rig.Prove("while one node is drained, the other instance cannot be evicted", func(ctx context.Context, p *rig.Run) {
			awaitBudget(ctx, p, pods[0])
			p.Afterwards(ctx, func(ctx context.Context) error { return rig.UncordonWorkers(ctx, p) })
			p.Check(rig.Cordon(ctx, p, pods[0].Spec.NodeName, true))
			p.Check(evict(ctx, p, pods[0]))
			refusesEviction(ctx, p, pods[1])
			p.Await(ctx, pods[0].Name+" waits for its node", 30*time.Second, func(ctx context.Context) (bool, string, error) {
				now, err := cachePods(ctx, p, rig.Alpha)
				waits := slices.ContainsFunc(now, func(pod corev1.Pod) bool {
					return pod.Name == pods[0].Name && pod.UID != pods[0].UID && pod.Spec.NodeName == ""
				})
				return waits, placement(now), err
			})
			refusesEviction(ctx, p, pods[1])
			p.Evidence("one evicted, the eviction of the other refused")
		}),

		rig.Prove("the other instance serves both nodes", func(ctx context.Context, p *rig.Run) {
			p.Evidence("drained: %s", cachedEverywhere(ctx, p, rig.Alpha))
		}),

		rig.Prove("without high availability one instance serves, and there is no budget and no second volume", func(ctx context.Context, p *rig.Run) {
			p.Check(rig.UncordonWorkers(ctx, p))
			rig.Cached(rig.Alpha, rig.Beta)(ctx, p)
			p.Await(ctx, "alpha has one instance", 30*time.Second, func(ctx context.Context) (bool, string, error) {
				now, err := cachePods(ctx, p, rig.Alpha)
				return len(now) == 1, placement(now), err
			})
			claim := claimOfPod(pods[1])
			p.Await(ctx, "the second volume is deleted", 30*time.Second, func(ctx context.Context) (bool, string, error) {
				err := p.Session.Shoot.Get(ctx, client.ObjectKeyFromObject(claim), claim)
				return apierrors.IsNotFound(err), claim.Name + " exists", client.IgnoreNotFound(err)
			})
			p.Gone(ctx, p.Session.Shoot, budgetOf(pods[0]))
			p.Evidence("switched off: %s", cachedEverywhere(ctx, p, rig.Alpha))
		}),
	)
}

// awaitWorkers waits until every worker is ready, schedulable and without taints.
func awaitWorkers(ctx context.Context, p *rig.Run) {
	p.Helper()
	p.Await(ctx, "pods can be scheduled on every worker", time.Minute, func(ctx context.Context) (bool, string, error) {
		for _, worker := range p.Workers() {
			node := &corev1.Node{}
			if err := p.Session.Shoot.Get(ctx, client.ObjectKey{Name: worker.Name()}, node); err != nil {
				return false, "node " + worker.Name() + " does not exist", client.IgnoreNotFound(err)
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

// cachedEverywhere pulls a new image on every worker. It proves that the cache fetched the image
// once, and that no node fetched the image from the upstream, and returns the evidence.
func cachedEverywhere(ctx context.Context, p *rig.Run, host string) accesslog.Evidence {
	p.Helper()
	img := p.Push(ctx, host)
	for _, worker := range p.Workers() {
		p.TimedPull(ctx, worker, img)
	}
	return p.FetchedOnce(ctx, img, accesslog.AskerCache)
}

// Bounds of the time until every node has pulled a new image through a cache.
const (
	// runningWithin applies if the cache is running. containerd waits 30 s for one that hangs, so a
	// pull that has to wait exceeds the bound.
	runningWithin = 20 * time.Second
	// restartedWithin includes a rollout and the configuration of nodes.
	restartedWithin = 40 * time.Second
)

// cachedWithin is like cachedEverywhere, but also proves that the pulls ended in time, counted from
// start. One image may miss the cache, within the same time: after a pod has changed, a connection
// of a node can time out, and containerd then goes on to the upstream.
func cachedWithin(ctx context.Context, p *rig.Run, host string, start time.Time, within time.Duration) accesslog.Evidence {
	p.Helper()
	for missed := false; ; missed = true {
		img := p.Push(ctx, host)
		for _, worker := range p.Workers() {
			p.TimedPull(ctx, worker, img)
		}
		if took := time.Since(start); took > within {
			p.Fatalf("new images of %s came through the cache after %s, want at most %s", host, rig.Seconds(took), within)
		}
		if missed || len(p.Requests(ctx, img).By(accesslog.AskerNode)) == 0 {
			return p.FetchedOnce(ctx, img, accesslog.AskerCache)
		}
	}
}

// twoCachePods returns the pods of an upstream's cache, sorted by name.
func twoCachePods(ctx context.Context, p *rig.Run, host string) []corev1.Pod {
	p.Helper()
	pods, err := cachePods(ctx, p, host)
	p.Check(err)
	return pods
}

func cachePods(ctx context.Context, p *rig.Run, host string) ([]corev1.Pod, error) {
	pods := &corev1.PodList{}
	if err := p.Session.Shoot.List(ctx, pods, client.InNamespace(metav1.NamespaceSystem), client.MatchingLabels{v1alpha3.LabelUpstreamHost: host}); err != nil {
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

// claimOfPod returns the volume claim of a cache's pod, with only namespace and name.
func claimOfPod(pod corev1.Pod) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: "cache-volume-" + pod.Name}}
}

// budgetOf returns the PodDisruptionBudget of the pod's cache, with only namespace and name.
func budgetOf(pod corev1.Pod) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Labels["app"]}}
}

// awaitBudget waits until the PodDisruptionBudget counts both instances and so allows an eviction.
func awaitBudget(ctx context.Context, p *rig.Run, pod corev1.Pod) {
	p.Helper()
	budget := budgetOf(pod)
	p.Await(ctx, "the budget counts both instances", 30*time.Second, func(ctx context.Context) (bool, string, error) {
		err := p.Session.Shoot.Get(ctx, client.ObjectKeyFromObject(budget), budget)
		status := budget.Status
		return status.ObservedGeneration == budget.Generation && status.CurrentHealthy == 2, fmt.Sprintf("%+v", status), err
	})
}

// evict evicts the pod, as kubectl drain does.
func evict(ctx context.Context, p *rig.Run, pod corev1.Pod) error {
	if err := p.Session.Shoot.SubResource("eviction").Create(ctx, &pod, &policyv1.Eviction{}); err != nil {
		return fmt.Errorf("evict %s: %w", pod.Name, err)
	}
	return nil
}

// refusesEviction proves that the budget prevents the eviction of the pod.
func refusesEviction(ctx context.Context, p *rig.Run, pod corev1.Pod) {
	p.Helper()
	if err := evict(ctx, p, pod); !apierrors.IsTooManyRequests(err) || !apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause) {
		p.Fatalf("the eviction of %s was not refused by its budget: %v", pod.Name, err)
	}
}
