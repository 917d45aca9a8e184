//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/e2e/rig"
	"github.com/gardener-extensions/registry-cache/kind/cluster"
)

const (
	// nodesCleaned is the condition that reports the nodes that a clean-up has skipped.
	nodesCleaned = "NodesCleaned"
	// quietFor is how long the node has not been ready when the clean-up begins. The extension skips a
	// node that has not been ready for a minute.
	quietFor = 55 * time.Second
	// cleanUpBound bounds a clean-up with a node that is not ready: five seconds until the node has
	// not been ready for a minute, ten until gardener-resource-manager force-deletes the stuck pod,
	// and the time of a normal clean-up.
	cleanUpBound = 50 * time.Second
	// taintedBound bounds the clean-up of a tainted node, which is a normal clean-up.
	taintedBound = 45 * time.Second
	// e2eTaint repels and evicts every pod that does not tolerate it.
	e2eTaint = "e2e.registry-cache.test/evict"
)

// notReady proves that a node whose taint evicts pods is cleaned like any other. A node that is not
// ready does not block the clean-up, is reported, and is cleaned once it is ready again.
func notReady() rig.Scenario {
	var broken, tainted *cluster.Node
	var flow *rig.Background
	var release func(context.Context) error
	var start time.Time
	return rig.New("not-ready",
		rig.Prove("alpha and beta are cached", rig.Cached(rig.Alpha, rig.Beta)),
		rig.Prove("one worker is not ready, the other evicts pods", func(ctx context.Context, p *rig.Run) {
			broken, tainted = p.Worker(0), p.Worker(1)
			awaitAge(ctx, p, broken, 2*quietFor)
			release = p.HoldNodeAgents(ctx)
			p.Afterwards(ctx, func(ctx context.Context) error { return taint(ctx, p, tainted, false) })
			p.Check(taint(ctx, p, tainted, true))
			p.Afterwards(ctx, func(ctx context.Context) error { return startKubelet(ctx, broken) })
			_, err := broken.Exec(ctx, "systemctl", "stop", "kubelet.service")
			p.Check(err)
			p.Check(reportNotReady(ctx, p, broken))
		}),

		rig.Prove("alpha is removed from the tainted worker while the clean-up waits for the other one", func(ctx context.Context, p *rig.Run) {
			start = time.Now()
			flow = p.Background(ctx, func(ctx context.Context) error { return rig.Reconcile(ctx, p, rig.Beta) })
			p.Await(ctx, "alpha's hosts.toml is gone from "+tainted.Name(), taintedBound, func(ctx context.Context) (bool, string, error) {
				hosts, err := rig.ReadFile(ctx, tainted, rig.HostsPath(rig.Alpha))
				return rig.IsAbsent(hosts), "it exists", err
			})
			if state := rig.StateOf(p.Extension(ctx)); state != gardencorev1beta1.LastOperationStateProcessing {
				p.Fatalf("the Extension is already %s", state)
			}
			p.Evidence("with taints NoSchedule and NoExecute: clean after %s", rig.Seconds(time.Since(start)))
		}),

		rig.Prove("alpha is removed in time", func(ctx context.Context, p *rig.Run) {
			p.Await(ctx, "the Extension is reconciled without alpha", cleanUpBound, func(ctx context.Context) (bool, string, error) {
				extension, err := rig.GetExtension(ctx, p)
				if err != nil {
					return false, "", err
				}
				done := rig.StateOf(extension) == gardencorev1beta1.LastOperationStateSucceeded && extension.Status.ProviderStatus != nil &&
					!strings.Contains(string(extension.Status.ProviderStatus.Raw), rig.Alpha)
				return done, fmt.Sprint(rig.StateOf(extension)), nil
			})
			p.Evidence("with a node that is not ready: done after %s", rig.Seconds(time.Since(start)))
		}),

		rig.Prove("the status names the node that is not ready", func(ctx context.Context, p *rig.Run) {
			for _, condition := range p.Extension(ctx).Status.Conditions {
				if condition.Type == nodesCleaned {
					if condition.Status != gardencorev1beta1.ConditionFalse || !strings.Contains(condition.Message, broken.Name()) ||
						strings.Contains(condition.Message, tainted.Name()+".") {
						p.Fatalf("condition %s is %s: %s", nodesCleaned, condition.Status, condition.Message)
					}
					p.Evidence("condition %s: %s", nodesCleaned, condition.Reason)
					return
				}
			}
			p.Fatalf("the Extension has no condition %s", nodesCleaned)
		}),

		rig.Prove("only the tainted worker is clean", func(ctx context.Context, p *rig.Run) {
			if hosts := p.Hosts(ctx, tainted, rig.Alpha); !rig.IsAbsent(hosts) {
				p.Errorf("alpha's hosts.toml is on %s:\n%s", tainted.Name(), hosts)
			}
			if hosts := p.Hosts(ctx, broken, rig.Alpha); rig.IsAbsent(hosts) {
				p.Errorf("alpha's hosts.toml is gone from %s already, so this proves nothing", broken.Name())
			}
		}),

		rig.Prove("the other worker is clean once it is back", func(ctx context.Context, p *rig.Run) {
			p.Check(startKubelet(ctx, broken))
			p.Check(taint(ctx, p, tainted, false))
			p.Check(release(ctx))
			p.Join(ctx, flow, rig.Reconciled(rig.Beta), 4*time.Minute)
			p.AwaitMirrors(ctx, rig.Beta)
			p.NoCleanerLeft(ctx)
			proveDirect(ctx, p, rig.Alpha, rig.MaxPull)
		}),
	)
}

// awaitAge waits until the node has this age. A younger node would count as still booting.
func awaitAge(ctx context.Context, p *rig.Run, worker *cluster.Node, age time.Duration) {
	p.Helper()
	p.Await(ctx, fmt.Sprintf("node %s is older than %s", worker.Name(), age), age+time.Minute, func(ctx context.Context) (bool, string, error) {
		node := &corev1.Node{}
		err := p.Session.Shoot.Get(ctx, client.ObjectKey{Name: worker.Name()}, node)
		since := time.Since(node.CreationTimestamp.Time)
		return err == nil && since > age, fmt.Sprintf("its age is %s", rig.Seconds(since)), err
	})
}

// reportNotReady sets the Ready condition to Unknown, as the control plane does some time after the
// kubelet has stopped reporting.
func reportNotReady(ctx context.Context, p *rig.Run, worker *cluster.Node) error {
	node := &corev1.Node{}
	if err := p.Session.Shoot.Get(ctx, client.ObjectKey{Name: worker.Name()}, node); err != nil {
		return fmt.Errorf("get node %s: %w", worker.Name(), err)
	}
	patch := client.StrategicMergeFrom(node.DeepCopy())
	for i := range node.Status.Conditions {
		if node.Status.Conditions[i].Type == corev1.NodeReady {
			node.Status.Conditions[i].Status = corev1.ConditionUnknown
			node.Status.Conditions[i].LastTransitionTime = metav1.NewTime(time.Now().Add(-quietFor))
		}
	}
	if err := p.Session.Shoot.Status().Patch(ctx, node, patch); err != nil {
		return fmt.Errorf("report node %s as not ready: %w", worker.Name(), err)
	}
	return nil
}

func taint(ctx context.Context, p *rig.Run, worker *cluster.Node, on bool) error {
	node := &corev1.Node{}
	if err := p.Session.Shoot.Get(ctx, client.ObjectKey{Name: worker.Name()}, node); err != nil {
		return fmt.Errorf("get node %s: %w", worker.Name(), err)
	}
	patch := client.MergeFrom(node.DeepCopy())
	var taints []corev1.Taint
	for _, taint := range node.Spec.Taints {
		if taint.Key != e2eTaint {
			taints = append(taints, taint)
		}
	}
	if on {
		taints = append(taints, corev1.Taint{Key: e2eTaint, Effect: corev1.TaintEffectNoSchedule}, corev1.Taint{Key: e2eTaint, Effect: corev1.TaintEffectNoExecute})
	}
	node.Spec.Taints = taints
	if err := p.Session.Shoot.Patch(ctx, node, patch); err != nil {
		return fmt.Errorf("change the taints of node %s: %w", worker.Name(), err)
	}
	return nil
}
