//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/e2e/rig"
	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

// lostVolume proves that a cache restarts with an empty volume after its volume was lost with a
// machine.
func lostVolume() rig.Scenario {
	var lost *cluster.Node
	var claim *corev1.PersistentVolumeClaim
	return rig.New("lost-volume",
		rig.Prove("alpha and beta are cached", rig.Cached(rig.Alpha, rig.Beta)),
		rig.Prove("the machine with alpha's volume is gone, and alpha's pod cannot be scheduled", func(ctx context.Context, p *rig.Run) {
			claim = claimOf(ctx, p, rig.Alpha)
			pod := podOf(ctx, p, rig.Alpha)
			for _, worker := range p.Workers() {
				if worker.Name() == pod.Spec.NodeName {
					lost = worker
				}
			}
			p.Afterwards(ctx, func(ctx context.Context) error { return startKubelet(ctx, lost) })
			p.Check(removeMachine(ctx, p, lost))
			p.Await(ctx, "alpha's pod is unschedulable", 30*time.Second, func(ctx context.Context) (bool, string, error) {
				err := p.Session.Shoot.Get(ctx, client.ObjectKeyFromObject(pod), pod)
				for _, condition := range pod.Status.Conditions {
					if condition.Type == corev1.PodScheduled && condition.Reason == corev1.PodReasonUnschedulable {
						return true, "", nil
					}
				}
				return false, rig.PodState(pod), client.IgnoreNotFound(err)
			})
			if now := claimOf(ctx, p, rig.Alpha); now.UID != claim.UID {
				p.Fatalf("the claim was replaced before the reconciliation, so this proves nothing")
			}
		}),

		rig.Prove("the next reconciliation replaces the volume", func(ctx context.Context, p *rig.Run) {
			start := time.Now()
			p.Reconcile(ctx, rig.Alpha, rig.Beta)
			p.AwaitCaches(ctx, rig.Alpha, rig.Beta)
			if now := claimOf(ctx, p, rig.Alpha); now.UID == claim.UID || now.Spec.VolumeName == claim.Spec.VolumeName {
				p.Fatalf("alpha's cache runs with the lost volume %s", now.Spec.VolumeName)
			}
			p.Evidence("new volume, and all machines back, after %s", rig.Seconds(time.Since(start)))
		}),

		rig.Prove("alpha's cache works on an empty volume", func(ctx context.Context, p *rig.Run) {
			p.AwaitMirrors(ctx, rig.Alpha, rig.Beta)
			awaitUpstreams(ctx, p, rig.Alpha)
			img := p.Push(ctx, rig.Alpha)
			for _, worker := range p.Workers() {
				p.TimedPull(ctx, worker, img)
			}
			p.Evidence("on an empty volume: %s", p.FetchedOnce(ctx, img, accesslog.AskerCache))
		}),
	)
}

// removeMachine deletes a machine, its Node and the pods on that Node, as
// machine-controller-manager does.
func removeMachine(ctx context.Context, p *rig.Run, worker *cluster.Node) error {
	if err := worker.StopMachine(ctx); err != nil {
		return err
	}
	if err := p.Session.Shoot.Delete(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: worker.Name()}}); err != nil {
		return fmt.Errorf("delete node %s: %w", worker.Name(), err)
	}
	pods := &corev1.PodList{}
	if err := p.Session.Shoot.List(ctx, pods, client.MatchingFields{"spec.nodeName": worker.Name()}); err != nil {
		return fmt.Errorf("list the pods of %s: %w", worker.Name(), err)
	}
	for i := range pods.Items {
		if err := client.IgnoreNotFound(p.Session.Shoot.Delete(ctx, &pods.Items[i], client.GracePeriodSeconds(0))); err != nil {
			return fmt.Errorf("remove pod %s: %w", pods.Items[i].Name, err)
		}
	}
	return nil
}

// podOf returns the pod of a cache with one instance.
func podOf(ctx context.Context, p *rig.Run, host string) *corev1.Pod {
	p.Helper()
	pod := &corev1.Pod{}
	p.Check(p.Session.Shoot.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: p.Services(ctx)[host].Name + "-0"}, pod))
	return pod
}
