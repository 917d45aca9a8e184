//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/cachetest"
	"github.com/gardener-extensions/registry-cache/e2e/rig"
)

// interruptedTimeout bounds an operation during which the extension is killed once.
const interruptedTimeout = 90 * time.Second

// interrupted proves that the extension completes an operation during which it is killed, and
// leaves no cleaner. The operations remove beta from the nodes, add a cache with HTTPS, and disable
// the extension. gardener-node-agent is stopped, so only the cleaner removes files from nodes.
func interrupted() rig.Scenario {
	var release func(context.Context) error
	var flow *rig.Background
	return rig.New("interrupted",
		rig.Prove("alpha and beta are cached", rig.Cached(rig.Alpha, rig.Beta)),
		rig.Prove("the extension's process is killed while beta is removed from the nodes", func(ctx context.Context, p *rig.Run) {
			release = p.HoldNodeAgents(ctx)
			flow = p.Background(ctx, func(ctx context.Context) error {
				return rig.ReconcileConfig(ctx, p, cachetest.Cache(rig.Alpha), tlsCache(rig.Gamma))
			})
			awaitCleaner(ctx, p, flow)
			interrupt(ctx, p, killProcess)
		}),

		rig.Prove("the extension's pod is deleted when gamma's cache has a Service but no certificate", func(ctx context.Context, p *rig.Run) {
			p.Await(ctx, "gamma's Service exists", interruptedTimeout, func(ctx context.Context) (bool, string, error) {
				_, there := p.Services(ctx)[rig.Gamma]
				return there, "it does not exist", flow.Failed()
			})
			interrupt(ctx, p, deletePod)
		}),

		rig.Prove("the Extension is still reconciled", func(ctx context.Context, p *rig.Run) {
			p.Await(ctx, "the Extension names gamma, and not beta", interruptedTimeout, func(ctx context.Context) (bool, string, error) {
				extension, err := rig.GetExtension(ctx, p)
				if err != nil {
					return false, "", err
				}
				status := extension.Status.ProviderStatus
				done := rig.StateOf(extension) == gardencorev1beta1.LastOperationStateSucceeded && status != nil &&
					!strings.Contains(string(status.Raw), rig.Beta) && strings.Contains(string(status.Raw), rig.Gamma)
				return done, fmt.Sprint(rig.StateOf(extension)), flow.Failed()
			})
			flow.End()
			if endpoint := p.Endpoints(ctx)[rig.Gamma]; !strings.HasPrefix(endpoint, "https://") {
				p.Errorf("gamma's endpoint is %q", endpoint)
			}
			p.AwaitCaches(ctx, rig.Alpha, rig.Gamma)
			for _, worker := range p.Workers() {
				if hosts := p.Hosts(ctx, worker, rig.Beta); !rig.IsAbsent(hosts) {
					p.Errorf("beta's hosts.toml is on %s:\n%s", worker.Name(), hosts)
				}
			}
			p.NoCleanerLeft(ctx)
		}),

		rig.Prove("the extension's process is killed while the extension is disabled", func(ctx context.Context, p *rig.Run) {
			flow = p.Background(ctx, func(ctx context.Context) error { return rig.Reconcile(ctx, p) })
			awaitCleaner(ctx, p, flow)
			interrupt(ctx, p, killProcess)
			p.Await(ctx, "the Extension is gone", interruptedTimeout, func(ctx context.Context) (bool, string, error) {
				extension := &extensionsv1alpha1.Extension{}
				err := p.Session.Seed.Get(ctx, client.ObjectKey{Namespace: rig.ShootNamespace, Name: v1alpha3.ExtensionType}, extension)
				if apierrors.IsNotFound(err) {
					return true, "", nil
				}
				return false, fmt.Sprint(rig.StateOf(extension)), err
			})
			proveCleanWorkers(ctx, p)
			p.NothingDeployed(ctx)
			p.NoCleanerLeft(ctx)
		}),

		rig.Prove("gardenlet's flow also finishes", func(ctx context.Context, p *rig.Run) {
			p.Check(release(ctx))
			p.Join(ctx, flow, rig.Reconciled(), rig.ReconcileTimeout)
			awaitNothingOnWorkers(ctx, p)
			p.Evidence("killed 3 times: each operation finished, nodes clean")
		}),
	)
}

// awaitCleaner waits until the cleaner's DaemonSet exists in the shoot.
func awaitCleaner(ctx context.Context, p *rig.Run, flow *rig.Background) {
	p.Helper()
	p.Await(ctx, "the cleaner is in the shoot", time.Minute, func(ctx context.Context) (bool, string, error) {
		err := p.Session.Shoot.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: v1alpha3.CleanerDaemonSet}, &appsv1.DaemonSet{})
		if apierrors.IsNotFound(err) {
			return false, "", flow.Failed()
		}
		return err == nil, "", err
	})
}

// leaderLease returns the key of the leader election lease of the extension that runs in a
// namespace. The holder identity is <pod>_<random>, so it differs for each process.
func leaderLease(namespace string) client.ObjectKey {
	return client.ObjectKey{Namespace: namespace, Name: "extension-registry-cache-leader-election"}
}

// interrupt kills the extension during an operation and returns when another process is the leader.
// To save time, the function clears the killed process's lease, which expires after 15 seconds.
func interrupt(ctx context.Context, p *rig.Run, kill func(ctx context.Context, p *rig.Run, pod *corev1.Pod) error) {
	p.Helper()
	lease, key := &coordinationv1.Lease{}, leaderLease(p.ExtensionNamespace(ctx))
	p.Check(p.Session.Seed.Get(ctx, key, lease))
	dead := ptr.Deref(lease.Spec.HolderIdentity, "")
	name, _, _ := strings.Cut(dead, "_")
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: name}}
	p.Check(kill(ctx, p, pod))
	if state := rig.StateOf(p.Extension(ctx)); state != gardencorev1beta1.LastOperationStateProcessing {
		p.Fatalf("the Extension is already %s: it was not interrupted", state)
	}
	p.Await(ctx, "another process of the extension is the leader", time.Minute, func(ctx context.Context) (bool, string, error) {
		if err := p.Session.Seed.Get(ctx, key, lease); err != nil {
			return false, "", err
		}
		holder := ptr.Deref(lease.Spec.HolderIdentity, "")
		if holder != dead {
			return holder != "", "no leader", nil
		}
		lease.Spec.HolderIdentity = ptr.To("")
		// On a conflict, another process holds the lease, or the killed process has renewed it.
		if err := p.Session.Seed.Update(ctx, lease); !apierrors.IsConflict(err) {
			return false, holder, err
		}
		return false, holder, nil
	})
}

// killProcess kills the process and keeps the pod. The kubelet restarts the container at once after
// the first kill, and with a backoff of 10 seconds or more after later ones.
func killProcess(ctx context.Context, p *rig.Run, pod *corev1.Pod) error {
	const script = `
container=$(crictl ps --quiet --name '^extension$' --label "io.kubernetes.pod.name=$1")
kill -KILL "$(crictl inspect --output go-template --template '{{.info.pid}}' "$container")"`
	if _, err := p.Session.Testbed.Seed.ControlPlane().Script(ctx, script, pod.Name); err != nil {
		return fmt.Errorf("kill the process of %s: %w", pod.Name, err)
	}
	return nil
}

// deletePod deletes the pod without a grace period.
func deletePod(ctx context.Context, p *rig.Run, pod *corev1.Pod) error {
	if err := p.Session.Seed.Delete(ctx, pod, client.GracePeriodSeconds(0)); err != nil {
		return fmt.Errorf("delete pod %s at once: %w", pod.Name, err)
	}
	return nil
}
