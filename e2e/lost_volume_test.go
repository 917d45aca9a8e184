//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

// lostVolume proves that a cache whose volume is on the disk of a machine that is gone starts again from nothing.
func lostVolume() scenario {
	var lost *cluster.Node
	var claim *corev1.PersistentVolumeClaim
	return newScenario("lost-volume",
		step{"alpha and beta are cached", cached(alpha, beta)},
		step{"the machine with alpha's volume is gone, and its pod waits for it", func(ctx context.Context, p *scenarioRun) {
			claim = claimOf(ctx, p, alpha)
			pod := podOf(ctx, p, alpha)
			for _, worker := range p.Workers() {
				if worker.Name() == pod.Spec.NodeName {
					lost = worker
				}
			}
			p.Afterwards(ctx, func(ctx context.Context) error { return startKubelet(ctx, lost) })
			p.Check(removeMachine(ctx, p, lost))
			p.Await(ctx, "alpha's pod finds no node", 30*time.Second, func(ctx context.Context) (bool, string, error) {
				err := p.suite.shoot.Get(ctx, client.ObjectKeyFromObject(pod), pod)
				for _, condition := range pod.Status.Conditions {
					if condition.Type == corev1.PodScheduled && condition.Reason == corev1.PodReasonUnschedulable {
						return true, "", nil
					}
				}
				return false, podState(pod), client.IgnoreNotFound(err)
			})
			if now := claimOf(ctx, p, alpha); now.UID != claim.UID {
				p.Fatalf("the claim was replaced by somebody else: this would prove nothing")
			}
		}},
		step{"the next reconciliation gives the volume up", func(ctx context.Context, p *scenarioRun) {
			start := time.Now()
			p.Reconcile(ctx, alpha, beta) // it starts the machine too, after the Extension was reconciled
			p.AwaitCaches(ctx, alpha, beta)
			if now := claimOf(ctx, p, alpha); now.UID == claim.UID || now.Spec.VolumeName == claim.Spec.VolumeName {
				p.Fatalf("alpha's cache runs with the volume that was lost, %s", now.Spec.VolumeName)
			}
			p.Evidence("another volume, and all machines back, after %s", seconds(time.Since(start)))
		}},
		step{"alpha's cache works from nothing", func(ctx context.Context, p *scenarioRun) {
			p.AwaitMirrors(ctx, alpha, beta)
			p.AwaitUpstreams(ctx, alpha)
			img := p.Push(ctx, alpha)
			for _, worker := range p.Workers() {
				p.TimedPull(ctx, worker, img)
			}
			p.Evidence("on an empty volume: %s", p.FetchedOnce(ctx, img, accesslog.AskerCache))
		}},
	)
}

// removeMachine does what machine-controller-manager does in the end: the machine is gone, its node too, and no pod stays
// bound to it.
func removeMachine(ctx context.Context, p *scenarioRun, worker *cluster.Node) error {
	if err := worker.StopMachine(ctx); err != nil {
		return err
	}
	if err := p.suite.shoot.Delete(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: worker.Name()}}); err != nil {
		return fmt.Errorf("delete node %s: %w", worker.Name(), err)
	}
	pods := &corev1.PodList{}
	if err := p.suite.shoot.List(ctx, pods, client.MatchingFields{"spec.nodeName": worker.Name()}); err != nil {
		return fmt.Errorf("list the pods of %s: %w", worker.Name(), err)
	}
	for i := range pods.Items {
		if err := client.IgnoreNotFound(p.suite.shoot.Delete(ctx, &pods.Items[i], client.GracePeriodSeconds(0))); err != nil {
			return fmt.Errorf("remove pod %s: %w", pods.Items[i].Name, err)
		}
	}
	return nil
}

// podOf returns the pod of a cache with one instance.
func podOf(ctx context.Context, p *scenarioRun, host string) *corev1.Pod {
	p.Helper()
	pod := &corev1.Pod{}
	p.Check(p.suite.shoot.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: p.Services(ctx)[host].Name + "-0"}, pod))
	return pod
}
