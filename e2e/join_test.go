//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/e2e/rig"
	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/kind/gardener"
	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

// join proves that a node keeps no hosts.toml for an upstream that is removed while the node joins.
func join() rig.Scenario {
	var joining, other *cluster.Node
	var old *corev1.Node
	var flow *rig.Background
	return rig.New("join",
		rig.Prove("alpha and beta are cached", rig.Cached(rig.Alpha, rig.Beta)),
		rig.Prove("a machine is gone", func(ctx context.Context, p *rig.Run) {
			other, joining = p.Worker(0), p.Worker(1)

			p.Afterwards(ctx, func(ctx context.Context) error { return startKubelet(ctx, other) })
			old = poolNode(ctx, p, joining)
			p.Check(joining.StopMachine(ctx))
			p.Check(client.IgnoreNotFound(p.Session.Shoot.Delete(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: joining.Name()}})))
		}),

		rig.Prove("alpha is removed, and the clean-up cannot finish", func(ctx context.Context, p *rig.Run) {
			_, err := other.Exec(ctx, "systemctl", "stop", "kubelet.service")
			p.Check(err)
			flow = p.Background(ctx, func(ctx context.Context) error { return rig.Reconcile(ctx, p, rig.Beta) })
			p.Await(ctx, "the cleaner is in the shoot", time.Minute, func(ctx context.Context) (bool, string, error) {
				set := &appsv1.DaemonSet{}
				err := p.Session.Shoot.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: v1alpha3.CleanerDaemonSet}, set)
				return err == nil, "", client.IgnoreNotFound(err)
			})
		}),

		rig.Prove("the machine joins with the old configuration", func(ctx context.Context, p *rig.Run) {
			joinAgain(ctx, p, joining, old)
			if unit := p.File(ctx, joining, nodeconfig.UnitPath); !strings.Contains(unit, rig.Beta+",") {
				p.Fatalf("gardener-node-agent has not written the unit on %s: %s", joining.Name(), unit)
			}
		}),

		rig.Prove("the removal finishes", func(ctx context.Context, p *rig.Run) {
			p.Check(startKubelet(ctx, other))
			p.Join(ctx, flow, rig.Reconciled(rig.Beta), 4*time.Minute)
			p.AwaitMirrors(ctx, rig.Beta)
		}),

		rig.Prove("nothing of alpha is on the node that joined", func(ctx context.Context, p *rig.Run) {
			for where, text := range map[string]string{
				nodeconfig.UnitPath: p.File(ctx, joining, nodeconfig.UnitPath), "systemd": p.Systemd(ctx, joining, "ExecStart"), "hosts.toml": p.Hosts(ctx, joining, rig.Alpha),
			} {
				if strings.Contains(text, rig.Alpha) {
					p.Errorf("%s on %s still has alpha: %s", where, joining.Name(), text)
				}
			}
			proveDirect(ctx, p, rig.Alpha, rig.MaxPull)
			p.NoCleanerLeft(ctx)
		}),
	)
}

func startKubelet(ctx context.Context, worker *cluster.Node) error {
	if _, err := worker.Exec(ctx, "systemctl", "start", "kubelet.service"); err != nil {
		return fmt.Errorf("start the kubelet of %s: %w", worker.Name(), err)
	}
	return nil
}

// poolNode returns the worker's Node. The scenario fails if the Node does not have secretNameLabel.
func poolNode(ctx context.Context, p *rig.Run, worker *cluster.Node) *corev1.Node {
	p.Helper()
	node := &corev1.Node{}
	p.Check(p.Session.Shoot.Get(ctx, client.ObjectKey{Name: worker.Name()}, node))
	if node.Labels[secretNameLabel] == "" {
		p.Fatalf("%s has no label %s", worker.Name(), secretNameLabel)
	}
	return node
}

// secretNameLabel is the label that names the Secret with gardener-node-agent's configuration.
const secretNameLabel = "worker.gardener.cloud/gardener-node-agent-secret-name"

// joinAgain starts the machine as gardenlet does: gardener-node-agent applies the configuration
// before the kubelet runs, and the Node gets the labels of its worker pool.
func joinAgain(ctx context.Context, p *rig.Run, worker *cluster.Node, old *corev1.Node) {
	p.Helper()
	gardenlet := p.Session.Testbed.Gardenlet
	agent := gardener.NodeAgent{
		Binary: gardenlet.NodeAgentBinary, Kubeconfig: gardenlet.ShootKubeconfig, SecretName: old.Labels[secretNameLabel],
		KubernetesVersion: strings.TrimPrefix(old.Status.NodeInfo.KubeletVersion, "v"),
	}
	p.Check(worker.StartMachine(ctx, func(ctx context.Context) error {
		if _, err := worker.Exec(ctx, "systemctl", "is-active", "--quiet", "kubelet.service"); err == nil {
			return fmt.Errorf("the kubelet of %s runs already", worker.Name())
		}
		return agent.Configure(ctx, worker)
	}))
	node := &corev1.Node{}
	p.Check(p.Session.Shoot.Get(ctx, client.ObjectKey{Name: worker.Name()}, node))
	patch := client.MergeFrom(node.DeepCopy())
	for key, value := range old.Labels {
		if strings.HasPrefix(key, "worker.gardener.cloud/") {
			metav1.SetMetaDataLabel(&node.ObjectMeta, key, value)
		}
	}
	p.Check(p.Session.Shoot.Patch(ctx, node, patch))
	p.Check(agent.Restart(ctx, worker))
}
