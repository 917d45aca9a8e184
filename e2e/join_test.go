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

	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/kind/gardener"
)

// joinTimeout is what a machine may take from its start until gardener-node-agent has configured it.
const joinTimeout = 2 * time.Minute

// join proves that a node that joins while an upstream is removed, and is still given the configuration of before, ends
// without a mirror of that upstream.
func join() scenario {
	var joining, other *cluster.Node
	var labels map[string]string
	var flow *background
	return newScenario("join",
		step{"alpha and beta are cached", cached(alpha, beta)},
		step{"a machine is gone", func(ctx context.Context, p *scenarioRun) {
			other, joining = p.Worker(0), p.Worker(1)
			// Whatever happens, the flow of the next scenario finds all machines as gardenlet left them.
			p.Afterwards(ctx, func(ctx context.Context) error { return startKubelet(ctx, other) })
			labels = poolLabels(ctx, p, joining)
			p.Check(joining.StopMachine(ctx))
			p.Check(client.IgnoreNotFound(p.suite.shoot.Delete(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: joining.Name()}})))
		}},
		step{"alpha is removed, and the clean-up does not come to its end", func(ctx context.Context, p *scenarioRun) {
			_, err := other.Exec(ctx, "systemctl", "stop", "kubelet.service") // no pod starts, and it stays Ready for a while
			p.Check(err)
			flow = p.Background(ctx, func(ctx context.Context) error { return reconcile(ctx, p, beta) })
			p.Await(ctx, "the cleaner is in the shoot", time.Minute, func(ctx context.Context) (bool, string, error) {
				set := &appsv1.DaemonSet{}
				err := p.suite.shoot.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: cleanerDaemonSet}, set)
				return err == nil, "", client.IgnoreNotFound(err)
			})
		}},
		step{"the machine joins with the configuration of before", func(ctx context.Context, p *scenarioRun) {
			p.Check(joining.StartMachine(ctx))
			installNodeAgent(ctx, p, joining, labels)
			p.Await(ctx, "gardener-node-agent has laid down the unit on "+joining.Name(), joinTimeout,
				func(ctx context.Context) (bool, string, error) {
					unit, err := readFile(ctx, joining, unitPath)
					return strings.Contains(unit, beta+","), unit, err
				})
		}},
		step{"the removal comes to its end", func(ctx context.Context, p *scenarioRun) {
			p.Check(startKubelet(ctx, other))
			p.Join(ctx, flow, reconciled(beta), 4*time.Minute)
			p.AwaitMirrors(ctx, beta)
		}},
		step{"nothing of alpha is on the node that joined", func(ctx context.Context, p *scenarioRun) {
			for where, text := range map[string]string{
				unitPath: p.File(ctx, joining, unitPath), "systemd": p.Systemd(ctx, joining, "ExecStart"), "hosts.toml": p.Hosts(ctx, joining, alpha),
			} {
				if strings.Contains(text, alpha) {
					p.Errorf("%s on %s still has alpha: %s", where, joining.Name(), text)
				}
			}
			p.ProveDirect(ctx, alpha, maxPull)
			p.NoCleanerLeft(ctx)
		}},
	)
}

func startKubelet(ctx context.Context, worker *cluster.Node) error {
	if _, err := worker.Exec(ctx, "systemctl", "start", "kubelet.service"); err != nil {
		return fmt.Errorf("start the kubelet of %s: %w", worker.Name(), err)
	}
	return nil
}

// poolLabels returns the labels that make a node a member of its worker pool.
func poolLabels(ctx context.Context, p *scenarioRun, worker *cluster.Node) map[string]string {
	p.Helper()
	node := &corev1.Node{}
	p.Check(p.suite.shoot.Get(ctx, client.ObjectKey{Name: worker.Name()}, node))
	labels := map[string]string{}
	for key, value := range node.Labels {
		if strings.HasPrefix(key, "worker.gardener.cloud/") {
			labels[key] = value
		}
	}
	if labels[secretNameLabel] == "" {
		p.Fatalf("%s has no label %s", worker.Name(), secretNameLabel)
	}
	return labels
}

// secretNameLabel leads gardener-node-agent to its configuration.
const secretNameLabel = "worker.gardener.cloud/gardener-node-agent-secret-name"

// installNodeAgent does what the user data of a machine does, and its kubelet's configuration.
func installNodeAgent(ctx context.Context, p *scenarioRun, worker *cluster.Node, labels map[string]string) {
	p.Helper()
	node := &corev1.Node{}
	p.Check(p.suite.shoot.Get(ctx, client.ObjectKey{Name: worker.Name()}, node))
	patch := client.MergeFrom(node.DeepCopy())
	for key, value := range labels {
		metav1.SetMetaDataLabel(&node.ObjectMeta, key, value)
	}
	p.Check(p.suite.shoot.Patch(ctx, node, patch))
	gardenlet := p.suite.testbed.Gardenlet
	p.Check(gardener.NodeAgent{
		Binary: gardenlet.NodeAgentBinary, Kubeconfig: gardenlet.ShootKubeconfig, SecretName: labels[secretNameLabel],
		KubernetesVersion: strings.TrimPrefix(node.Status.NodeInfo.KubeletVersion, "v"),
	}.Install(ctx, worker))
}
