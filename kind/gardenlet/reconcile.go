package gardenlet

import "github.com/gardener/gardener/pkg/utils/flow"

// reconcileGraph returns gardenlet's flow for creating and updating a shoot. Names and dependencies are those of gardenlet's
// reconciler_reconcile.go. In particular, stale extensions are deleted while the operating system configs roll out.
func reconcileGraph(t tasks) *flow.Graph {
	g := graph{flow.NewGraph("Shoot cluster reconciliation")}
	connected := g.connect(t)

	extensions := g.deploy("Deploying extension resources after kube-apiserver", t.deployExtensions, connected)
	extensionsReady := g.wait("Waiting until extension resources handled after kube-apiserver are ready",
		t.waitUntilExtensionsReady, extensions)

	configs := g.deploy("Deploying operating system specific configuration for shoot workers",
		t.deployOperatingSystemConfig, extensionsReady)
	configsReady := g.wait("Waiting until operating system configurations for worker nodes have been reconciled",
		t.waitUntilOperatingSystemConfigReady, configs)
	nodeAgent := g.deploy("Deploying managed resources for the gardener-node-agent", t.deployNodeAgentResources, configsReady)
	worker := g.wait("Configuring shoot worker pools", t.deployWorker, configsReady)
	workerReady := g.wait("Waiting until shoot worker nodes have been reconciled", t.waitUntilWorkerReady, worker, nodeAgent)
	g.wait("Waiting until all shoot worker nodes have updated the operating system config",
		t.waitUntilOperatingSystemConfigApplied, workerReady)

	afterWorker := g.deploy("Deploying extension resources after workers", t.deployExtensionsAfterWorker, worker, nodeAgent)
	g.wait("Waiting until extension resources handled after workers are ready", t.waitUntilExtensionsAfterWorkerReady, afterWorker)

	stale := g.deploy("Deleting stale extension resources", t.deleteStaleExtensions, connected)
	g.wait("Waiting until stale extension resources are deleted", t.waitUntilStaleExtensionsDeleted, stale)
	return g.Graph
}
