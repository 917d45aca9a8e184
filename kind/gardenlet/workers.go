package gardenlet

import (
	"context"
	"fmt"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"github.com/gardener/gardener/pkg/controllerutils"
	"github.com/gardener/gardener/pkg/utils/flow"
	gardenerutils "github.com/gardener/gardener/pkg/utils/gardener"
	"github.com/gardener/gardener/pkg/utils/kubernetes/health"
	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/kind/gardener"
)

// machineTimeout bounds the time from starting a machine until its node is ready.
const machineTimeout = 3 * time.Minute

// workers emulates the Worker resource, its extension, and machine-controller-manager. The machines
// exist already; they are started and stopped instead of created and deleted.
type workers struct{ *shootOperation }

// secretName returns the name of the pool's config Secret. Call it after deploying the config.
func (w workers) secretName() string {
	configs := w.Shoot.Components.Extensions.OperatingSystemConfig.WorkerPoolNameToOperatingSystemConfigsMap()
	return configs[w.pool().Name].Original.GardenerNodeAgentSecretName
}

func (w workers) pool() gardencorev1beta1.Worker { return w.Shoot.GetInfo().Spec.Provider.Workers[0] }

// declare writes the MachineDeployment of the pool, in which the care controller reads how many
// machines there should be.
func (w workers) declare(ctx context.Context) error {
	deployment := &machinev1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: w.Shoot.ControlPlaneNamespace, Name: w.pool().Name}}
	_, err := controllerutils.GetAndCreateOrMergePatch(ctx, w.SeedClientSet.Client(), deployment, func() error {
		deployment.Spec.Replicas = int32(len(w.gardenlet.Machines))
		return nil
	})
	if err != nil {
		return fmt.Errorf("declare the machines: %w", err)
	}
	return nil
}

// deploy starts the machines that do not run, labels their nodes as members of the pool, and
// installs gardener-node-agent. On a real machine, kubelet configuration and user data do this.
func (w workers) deploy(ctx context.Context) error {
	agent := gardener.NodeAgent{
		Binary: w.gardenlet.NodeAgentBinary, Kubeconfig: w.gardenlet.ShootKubeconfig, SecretName: w.secretName(),
		KubernetesVersion: w.Shoot.GetInfo().Spec.Kubernetes.Version,
	}
	if err := w.declare(ctx); err != nil {
		return err
	}
	return w.forEach(ctx, func(ctx context.Context, machine Machine) error {
		err := w.ShootClientSet.Client().Get(ctx, client.ObjectKey{Name: machine.Name()}, &corev1.Node{})
		if apierrors.IsNotFound(err) {
			return w.start(ctx, machine, agent)
		}
		if err != nil {
			return err
		}
		if err := w.labelNode(ctx, machine.Name()); err != nil {
			return err
		}
		if agent.Applied(ctx, machine) == nil {
			return agent.Install(ctx, machine)
		}
		return w.configure(ctx, machine, agent)
	})
}

// hold stops the kubelets of machines that gardener-node-agent has never configured. kind started
// them, but no pod may start there before configure has run, for the same reason as in start.
func (w workers) hold(ctx context.Context) error {
	return w.forEach(ctx, func(ctx context.Context, machine Machine) error {
		if (gardener.NodeAgent{}).Applied(ctx, machine) == nil {
			return nil
		}
		_, err := machine.Exec(ctx, "systemctl", "stop", "kubelet.service")
		return err
	})
}

// configure installs gardener-node-agent on a machine that was held, and starts the kubelet.
func (w workers) configure(ctx context.Context, machine Machine, agent gardener.NodeAgent) error {
	if err := agent.Configure(ctx, machine); err != nil {
		return err
	}
	_, err := machine.Exec(ctx, "systemctl", "start", "kubelet.service")
	return err
}

// start starts the machine. As on a real machine, gardener-node-agent applies the operating system
// config before the kubelet runs, because the agent restarts containerd. If the kubelet needed
// containerd for a pod during the restart, it would retry 10 seconds or even minutes later.
func (w workers) start(ctx context.Context, machine Machine, agent gardener.NodeAgent) error {
	err := machine.StartMachine(ctx, func(ctx context.Context) error { return agent.Configure(ctx, machine) })
	if err != nil {
		return err
	}
	if err := w.labelNode(ctx, machine.Name()); err != nil {
		return err
	}
	return agent.Restart(ctx, machine)
}

// labelNode waits until the kubelet has registered the node, and sets the pool's labels.
func (w workers) labelNode(ctx context.Context, name string) error {
	return gardener.Poll(ctx, machineTimeout, "the kubelet has not registered its node", func(ctx context.Context) error {
		node := &corev1.Node{}
		if err := w.ShootClientSet.Client().Get(ctx, client.ObjectKey{Name: name}, node); err != nil {
			return err
		}
		patch := client.MergeFrom(node.DeepCopy())
		for key, value := range gardenerutils.NodeLabelsForWorkerPool(w.pool(), false, w.secretName(), region) {
			metav1.SetMetaDataLabel(&node.ObjectMeta, key, value)
		}
		return w.ShootClientSet.Client().Patch(ctx, node, patch)
	})
}

func (w workers) wait(ctx context.Context) error {
	return w.forEach(ctx, func(ctx context.Context, machine Machine) error {
		return gardener.Poll(ctx, machineTimeout, "node is not ready", func(ctx context.Context) error {
			node := &corev1.Node{}
			if err := w.ShootClientSet.Client().Get(ctx, client.ObjectKey{Name: machine.Name()}, node); err != nil {
				return err
			}
			return health.CheckNode(node)
		})
	})
}

// destroy stops the machines and deletes their nodes, as machine-controller-manager does. It also
// deletes their pods at once. Kubernetes' pod garbage collector would delete them a minute later.
func (w workers) destroy(ctx context.Context) error {
	return w.forEach(ctx, func(ctx context.Context, machine Machine) error {
		if err := machine.StopMachine(ctx); err != nil {
			return err
		}
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: machine.Name()}}
		if err := w.ShootClientSet.Client().Delete(ctx, node); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete the node: %w", err)
		}
		return w.removePods(ctx, machine.Name())
	})
}

func (w workers) removePods(ctx context.Context, node string) error {
	pods := &corev1.PodList{}
	if err := w.ShootClientSet.Client().List(ctx, pods, client.MatchingFields{"spec.nodeName": node}); err != nil {
		return fmt.Errorf("list the pods of the node: %w", err)
	}
	for _, pod := range pods.Items {
		if err := w.ShootClientSet.Client().Delete(ctx, &pod, client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete pod %s: %w", client.ObjectKeyFromObject(&pod), err)
		}
	}
	return nil
}

func (w workers) waitCleanup(ctx context.Context) error {
	return gardener.Poll(ctx, machineTimeout, "machines are not gone", func(ctx context.Context) error {
		nodes := &corev1.NodeList{}
		if err := w.ShootClientSet.Client().List(ctx, nodes, client.HasLabels{v1beta1constants.LabelWorkerPool}); err != nil {
			return err
		}
		if len(nodes.Items) > 0 {
			return fmt.Errorf("node %s still exists", nodes.Items[0].Name)
		}
		return nil
	})
}

// forEach calls do for all machines in parallel. The error names the failed machines.
func (w workers) forEach(ctx context.Context, do func(context.Context, Machine) error) error {
	var fns []flow.TaskFn
	for _, machine := range w.gardenlet.Machines {
		fns = append(fns, func(ctx context.Context) error {
			if err := do(ctx, machine); err != nil {
				return fmt.Errorf("machine %s: %w", machine.Name(), err)
			}
			return nil
		})
	}
	return flow.Parallel(fns...)(ctx)
}

// Machine is a machine of the shoot's worker pool: a node of its kind cluster.
type Machine interface {
	gardener.Node
	// StopMachine stops everything that runs on the machine, as if it were gone. Its disk is kept.
	// Stopping a stopped machine is not an error.
	StopMachine(ctx context.Context) error
	// StartMachine starts a stopped machine as a new one: nothing of an applied operating system
	// config is left. It calls configure, which must not be nil, before the kubelet starts.
	StartMachine(ctx context.Context, configure func(context.Context) error) error
}
