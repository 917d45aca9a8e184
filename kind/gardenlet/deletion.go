package gardenlet

import "github.com/gardener/gardener/pkg/utils/flow"

// deleteGraph returns gardenlet's flow for deleting a shoot, with the names and dependencies of
// gardenlet's reconciler_delete.go. It deletes machines, then operating system configs and
// gardenlet's ManagedResources, and then extensions. The shoot's kube-apiserver belongs to kind and
// is not deleted.
func deleteGraph(t tasks) *flow.Graph {
	g := newGraph("Shoot cluster deletion")
	connected := g.connectForDeletion(t)
	nodes := g.unless(t.workerless)
	worker := nodes.deploy("Destroying shoot workers", t.destroyWorker, connected)
	workerGone := nodes.wait("Waiting until shoot worker nodes have been terminated", t.waitUntilWorkerGone, worker)
	configs := nodes.deploy("Deleting operating system config resources", t.configs.Destroy, workerGone)
	configsGone := nodes.wait("Waiting until all operating system config resources are deleted", t.configs.WaitCleanup, configs)
	resources := g.deploy("Deleting managed resources", t.deleteManagedResources, workerGone)
	resourcesGone := g.wait("Waiting until managed resources have been deleted",
		t.waitUntilManagedResourcesDeleted.Timeout(resourcesTimeout), resources)

	extensions := g.deploy("Deleting extension resources before kube-apiserver", t.extensions.DestroyBeforeKubeAPIServer, configsGone, resourcesGone)
	extensionsGone := g.wait("Waiting until extension resources that should be handled before kube-apiserver have been deleted",
		t.extensions.WaitCleanupBeforeKubeAPIServer, extensions)
	stale := g.deploy("Deleting stale extension resources", t.extensions.DeleteStaleResources, resourcesGone)
	staleGone := g.wait("Waiting until all stale extension resources have been deleted", t.extensions.WaitCleanupStaleResources, stale)
	leftoversGone := g.wait("Waiting until shoot managed resources have been deleted",
		t.waitUntilShootManagedResourcesDeleted.Timeout(leftoverTimeout), configsGone, resourcesGone, extensionsGone, staleGone)
	afterKAPI := g.deploy("Deleting extension resources after kube-apiserver", t.extensions.DestroyAfterKubeAPIServer, leftoversGone)
	afterKAPIGone := g.wait("Waiting until extension resources that should be handled after kube-apiserver have been deleted",
		t.extensions.WaitCleanupAfterKubeAPIServer, afterKAPI)

	managerGone := g.deploy("Destroying gardener-resource-manager", t.destroyResourceManager, afterKAPIGone)
	referencedGone := g.deploy("Deleting referenced resources", t.destroyReferencedResources, afterKAPIGone)
	g.deleteNamespace(t, managerGone, referencedGone)
	return g.Graph
}

// connectForDeletion adds the first tasks of a deletion or migration. They deploy what is needed to
// delete objects in the shoot, even if the shoot is hibernated. These tasks are skipped if an
// earlier attempt has already started to delete the namespace.
func (g graph) connectForDeletion(t tasks) flow.TaskIDer {
	g = g.unless(t.terminating)
	namespace := g.deploy("Deploying Shoot namespace in Seed", t.deployNamespace)
	manager := g.deploy("Deploying gardener-resource-manager", t.deployResourceManager, namespace)
	managerReady := g.wait("Waiting until gardener-resource-manager reports readiness", t.waitUntilResourceManagerReady, manager)
	return g.deploy("Deploying Gardener shoot access resources", t.deployShootAccess, managerReady)
}

// deleteNamespace adds the last tasks of a deletion or migration.
func (g graph) deleteNamespace(t tasks, dependencies ...flow.TaskIDer) {
	deletion := g.deploy("Deleting shoot namespace in Seed", t.deleteNamespace, dependencies...)
	namespaceGone := g.wait("Waiting until shoot namespace in Seed has been deleted",
		t.waitUntilNamespaceDeleted.Timeout(resourcesTimeout), deletion)
	g.deploy("Deleting Cluster resource in Seed", t.deleteCluster, namespaceGone)
}

// forceDeleteGraph returns gardenlet's flow for a shoot that cannot be deleted normally, with the
// names and dependencies of gardenlet's reconciler_force_delete.go. It deletes all extension
// objects, then all ManagedResources and their finalizers, and then the namespace and its content.
// The flow neither connects to the shoot nor touches machines.
func forceDeleteGraph(t tasks) *flow.Graph {
	g := newGraph("Shoot cluster force deletion")
	extensions := g.deploy("Deleting extension resources", t.deleteExtensionObjects)
	extensionsGone := g.wait("Waiting until extension resources have been deleted", t.waitUntilExtensionObjectsDeleted, extensions)

	keep := g.deploy("Configuring managed resources to not keep their objects when deleted", t.dropManagedResources, extensionsGone)
	resources := g.deploy("Deleting managed resources", t.forceDeleteManagedResources, keep)
	resourcesGone := g.wait("Waiting until managed resources have been deleted",
		t.waitUntilAllManagedResourcesDeleted.Timeout(resourcesTimeout), resources)
	cluster := g.deploy("Deleting Cluster resource", t.deleteCluster, extensionsGone, resourcesGone)

	others := g.deploy("Deleting Kubernetes resources", t.deleteKubernetesResources, cluster)
	namespace := g.deploy("Deleting shoot namespace", t.deleteNamespace, others)
	g.wait("Waiting until shoot namespace has been deleted", t.waitUntilNamespaceDeleted.Timeout(resourcesTimeout), namespace)
	g.wait("Deleting Shoot State", t.deleteShootState, namespace)
	return g.Graph
}
