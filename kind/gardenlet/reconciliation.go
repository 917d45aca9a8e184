package gardenlet

import "github.com/gardener/gardener/pkg/utils/flow"

// graph is an unfinished flow. Its methods add a task, or a group of tasks that flows share.
type graph struct {
	*flow.Graph
	skip bool // added tasks keep their place in the order but do nothing
}

func newGraph(name string) graph { return graph{Graph: flow.NewGraph(name)} }

// unless returns a graph that skips the tasks that are added to it if condition is true.
func (g graph) unless(condition bool) graph {
	return graph{Graph: g.Graph, skip: g.skip || condition}
}

// deploy adds a task that writes objects. If the task fails, it is retried for deployTimeout.
func (g graph) deploy(name string, fn flow.TaskFn, dependencies ...flow.TaskIDer) flow.TaskID {
	return g.wait(name, fn.RetryUntilTimeout(deployInterval, deployTimeout), dependencies...)
}

// wait adds a task that has its own timeout and retries.
func (g graph) wait(name string, fn flow.TaskFn, dependencies ...flow.TaskIDer) flow.TaskID {
	return g.Add(flow.Task{Name: name, Fn: fn, SkipIf: g.skip, Dependencies: flow.NewTaskIDs(dependencies...)})
}

// reconcileGraph returns gardenlet's flow for creating, updating and restoring a shoot, with the
// names, dependencies and conditions of gardenlet's reconciler_reconcile.go. In particular, stale
// extensions are deleted while the operating system configs roll out, and the extensions of a shoot
// that is being hibernated are reconciled before its nodes stop.
func reconcileGraph(t tasks) *flow.Graph {
	g := newGraph("Shoot cluster reconciliation")
	running, hibernating := g.unless(t.hibernated), g.unless(!t.hibernated)
	namespace := g.deploy("Deploying Shoot namespace in Seed", t.deployNamespace)
	secrets := g.deploy("Initializing secrets management", t.restoreSecrets, namespace)
	referenced := g.deploy("Deploying referenced resources", t.deployReferencedResources, secrets)
	beforeKAPI := running.deploy("Deploying extension resources before kube-apiserver", t.deployExtensionsBeforeKAPI, referenced)
	beforeKAPIReady := running.wait("Waiting until extension resources handled before kube-apiserver are ready",
		t.extensions.WaitBeforeKubeAPIServer, beforeKAPI)
	manager := g.deploy("Deploying gardener-resource-manager", t.deployResourceManager, beforeKAPIReady)
	managerReady := running.wait("Waiting until gardener-resource-manager reports readiness", t.waitUntilResourceManagerReady, manager)
	connected := g.deploy("Deploying Gardener shoot access resources", t.deployShootAccess, managerReady)

	deploy := "Deploying extension resources after kube-apiserver"
	wait := "Waiting until extension resources handled after kube-apiserver are ready"
	if t.hibernated {
		deploy = "Hibernating extension resources before kube-apiserver hibernation"
		wait = "Waiting until extension resources hibernated before kube-apiserver hibernation are ready"
	}
	extensionsReady := g.wait(wait, t.extensions.WaitAfterKubeAPIServer, g.deploy(deploy, t.deployExtensions, connected))
	configsReady := g.reconcileOperatingSystemConfigs(t, extensionsReady)
	running.deploy("Deploying shoot system resources", t.deploySystemResources, configsReady)
	workerReady := g.reconcileWorkers(t, configsReady)
	stale := g.deploy("Deleting stale extension resources", t.extensions.DeleteStaleResources, connected)
	running.wait("Waiting until stale extension resources are deleted", t.extensions.WaitCleanupStaleResources, stale)

	hibernated := hibernating.wait("Hibernating control plane",
		t.hibernateControlPlane.RetryUntilTimeout(deployInterval, hibernationTimeout), connected, workerReady, extensionsReady)
	afterKAPI := hibernating.deploy("Hibernating extension resources after kube-apiserver hibernation",
		t.deployExtensionsBeforeKAPI, hibernated)
	hibernating.wait("Waiting until extension resources hibernated after kube-apiserver hibernation are ready",
		t.extensions.WaitBeforeKubeAPIServer, afterKAPI)
	return g.Graph
}

// reconcileOperatingSystemConfigs adds the tasks for the configs. It returns the one that waits for
// them.
func (g graph) reconcileOperatingSystemConfigs(t tasks, extensionsReady flow.TaskIDer) flow.TaskID {
	g = g.unless(t.workerless)
	configs := g.deploy("Deploying operating system specific configuration for shoot workers", t.deployOperatingSystemConfig, extensionsReady)
	ready := g.wait("Waiting until operating system configurations for worker nodes have been reconciled", t.configs.Wait, configs)
	stale := g.deploy("Delete stale operating system config resources", t.configs.DeleteStaleResources, configs)
	g.unless(t.hibernated).wait("Waiting until stale operating system config resources are deleted",
		t.configs.WaitCleanupStaleResources, stale)
	return ready
}

// reconcileWorkers adds the tasks for the machines and the tasks that follow. It returns the task
// after which the nodes are ready, or gone if the shoot is hibernated.
func (g graph) reconcileWorkers(t tasks, configsReady flow.TaskIDer) flow.TaskID {
	g = g.unless(t.workerless)
	running := g.unless(t.hibernated)
	nodeAgent := running.deploy("Deploying managed resources for the gardener-node-agent", t.deployNodeAgentResources, configsReady)
	worker := g.wait("Configuring shoot worker pools", t.deployWorker, configsReady)
	workerReady := g.wait("Waiting until shoot worker nodes have been reconciled", t.waitUntilWorkerReady, worker, nodeAgent)
	running.wait("Waiting until all shoot worker nodes have updated the operating system config",
		t.waitUntilOperatingSystemConfigApplied, workerReady)

	afterWorker := g.deploy("Deploying extension resources after workers", t.deployExtensionsAfterWorker, worker, nodeAgent)
	g.wait("Waiting until extension resources handled after workers are ready", t.extensions.WaitAfterWorker, afterWorker)
	return workerReady
}
