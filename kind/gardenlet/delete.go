package gardenlet

import "github.com/gardener/gardener/pkg/utils/flow"

// deleteGraph returns gardenlet's flow for deleting a shoot, with the names and dependencies of
// gardenlet's reconciler_delete.go: machines, then operating system configs and gardenlet's
// ManagedResources, then extensions. The shoot's kube-apiserver belongs to kind and stays.
func deleteGraph(t tasks) *flow.Graph {
	g := newGraph("Shoot cluster deletion")
	connected := g.connectForDeletion(t)

	nodes := g.unless(t.workerless)
	worker := nodes.deploy("Destroying shoot workers", t.destroyWorker, connected)
	workerGone := nodes.wait("Waiting until shoot worker nodes have been terminated", t.waitUntilWorkerGone, worker)
	configs := nodes.deploy("Deleting operating system config resources", t.destroyOperatingSystemConfig, workerGone)
	configsGone := nodes.wait("Waiting until all operating system config resources are deleted",
		t.waitUntilOperatingSystemConfigDeleted, configs)
	resources := g.deploy("Deleting managed resources", t.deleteManagedResources, workerGone)
	resourcesGone := g.wait("Waiting until managed resources have been deleted",
		t.waitUntilManagedResourcesDeleted.Timeout(resourcesTimeout), resources)

	cleaned := flow.NewTaskIDs(configsGone, resourcesGone, g.deleteExtensions(t, configsGone, resourcesGone))
	leftoversGone := g.wait("Waiting until shoot managed resources have been deleted",
		t.waitUntilShootManagedResourcesDeleted.Timeout(leftoverTimeout), cleaned)
	afterKAPI := g.deploy("Deleting extension resources after kube-apiserver", t.destroyExtensionsAfterKAPI, leftoversGone)
	afterKAPIGone := g.wait("Waiting until extension resources that should be handled after kube-apiserver have been deleted",
		t.waitUntilExtensionsAfterKAPIDeleted, afterKAPI)

	managerGone := g.deploy("Destroying gardener-resource-manager", t.destroyResourceManager, afterKAPIGone)
	referencedGone := g.deploy("Deleting referenced resources", t.destroyReferencedResources, afterKAPIGone)
	deletion := g.deploy("Deleting shoot namespace in Seed", t.deleteNamespace, managerGone, referencedGone)
	namespaceGone := g.wait("Waiting until shoot namespace in Seed has been deleted",
		t.waitUntilNamespaceDeleted.Timeout(resourcesTimeout), deletion)
	g.deploy("Deleting Cluster resource in Seed", t.deleteCluster, namespaceGone)
	return g.Graph
}

// connectForDeletion adds the start of a deletion or migration: it deploys what is needed to delete
// objects in the shoot, even if the shoot is hibernated. It adds only skipped tasks if an earlier
// run has already started to delete the namespace.
func (g graph) connectForDeletion(t tasks) flow.TaskIDer {
	g = g.unless(t.terminating)
	namespace := g.deploy("Deploying Shoot namespace in Seed", t.deployNamespace)
	manager := g.deploy("Deploying gardener-resource-manager", t.deployResourceManager, namespace)
	managerReady := g.wait("Waiting until gardener-resource-manager reports readiness", t.waitUntilResourceManagerReady, manager)
	return g.deploy("Deploying Gardener shoot access resources", t.deployShootAccess, managerReady)
}

// deleteExtensions adds the deletion of stale extensions and of those before kube-apiserver. It
// returns the tasks after which they are gone.
func (g graph) deleteExtensions(t tasks, configsGone, resourcesGone flow.TaskID) flow.TaskIDs {
	extensions := g.deploy("Deleting extension resources before kube-apiserver", t.destroyExtensionsBeforeKAPI, configsGone, resourcesGone)
	extensionsGone := g.wait("Waiting until extension resources that should be handled before kube-apiserver have been deleted",
		t.waitUntilExtensionsBeforeKAPIDeleted, extensions)
	stale := g.deploy("Deleting stale extension resources", t.deleteStaleExtensions, resourcesGone)
	staleGone := g.wait("Waiting until all stale extension resources have been deleted", t.waitUntilStaleExtensionsDeleted, stale)
	return flow.NewTaskIDs(extensionsGone, staleGone)
}
