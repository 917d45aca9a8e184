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

// connectForDeletion adds the start of a deletion or migration: it deploys what is needed to delete
// objects in the shoot, even if the shoot is hibernated. These tasks are skipped if an earlier
// attempt has already started to delete the namespace.
func (g graph) connectForDeletion(t tasks) flow.TaskIDer {
	g = g.unless(t.terminating)
	namespace := g.deploy("Deploying Shoot namespace in Seed", t.deployNamespace)
	manager := g.deploy("Deploying gardener-resource-manager", t.deployResourceManager, namespace)
	managerReady := g.wait("Waiting until gardener-resource-manager reports readiness", t.waitUntilResourceManagerReady, manager)
	return g.deploy("Deploying Gardener shoot access resources", t.deployShootAccess, managerReady)
}

// deleteNamespace adds the end of a deletion or migration.
func (g graph) deleteNamespace(t tasks, dependencies ...flow.TaskIDer) {
	deletion := g.deploy("Deleting shoot namespace in Seed", t.deleteNamespace, dependencies...)
	namespaceGone := g.wait("Waiting until shoot namespace in Seed has been deleted",
		t.waitUntilNamespaceDeleted.Timeout(resourcesTimeout), deletion)
	g.deploy("Deleting Cluster resource in Seed", t.deleteCluster, namespaceGone)
}

// migrateGraph returns gardenlet's flow that prepares a shoot for its move to another seed, with
// the names and dependencies of gardenlet's reconciler_migrate.go. The flow deletes the
// ManagedResources but keeps their objects in the shoot, migrates the extensions, saves their state
// in the garden, and deletes the namespace. The shoot's machines and API server are not touched.
// Migrated resources have no finalizers, so no controller acts on their deletion.
func migrateGraph(t tasks) *flow.Graph {
	g := newGraph("Shoot cluster preparation for migration")
	connected := g.connectForDeletion(t)
	keep := g.unless(t.terminating).wait("Configuring Managed Resources objects to be kept in the Shoot", t.keepManagedResources, connected)
	resources := g.wait("Deleting all Managed Resources from the Shoot's namespace", t.deleteManagedResources, keep)
	resourcesGone := g.wait("Waiting until ManagedResources are deleted",
		t.waitUntilManagedResourcesDeleted.Timeout(resourcesTimeout), resources)
	nodes := g.unless(t.workerless)
	configs := nodes.wait("Migrating extension resources", t.configs.Migrate, resourcesGone)
	configsMigrated := nodes.wait("Waiting until extension resources have been migrated", t.configs.WaitMigrate, configs)
	extensions := g.wait("Migrating extensions before kube-apiserver", t.extensions.MigrateBeforeKubeAPIServer, resourcesGone)
	extensionsMigrated := g.wait("Waiting until extensions that should be handled before kube-apiserver have been migrated",
		t.extensions.WaitMigrateBeforeKubeAPIServer, extensions)
	// Like gardenlet, do not wait for the extensions: their status already contains their state.
	saved := g.wait("Persisting ShootState in garden cluster", t.persistShootState, configsMigrated)

	configsDeleted := nodes.wait("Deleting extension resources from the Shoot namespace", t.configs.Destroy, saved)
	configsGone := nodes.wait("Waiting until extension resources have been deleted", t.configs.WaitCleanup, configsDeleted)
	extensionsDeleted := g.wait("Deleting extensions before kube-apiserver", t.extensions.DestroyBeforeKubeAPIServer, configsGone, extensionsMigrated)
	extensionsGone := g.wait("Waiting until extensions that should be handled before kube-apiserver have been deleted",
		t.extensions.WaitCleanupBeforeKubeAPIServer, extensionsDeleted)
	stale := g.wait("Deleting stale extensions", t.extensions.DeleteStaleResources, configsMigrated)
	staleGone := g.wait("Waiting until all stale extensions have been deleted", t.extensions.WaitCleanupStaleResources, stale)
	leftoversGone := g.wait("Waiting until shoot managed resources have been deleted",
		t.waitUntilShootManagedResourcesDeleted.Timeout(leftoverTimeout), configsGone, extensionsGone, staleGone)

	afterKAPI := g.wait("Migrating extensions after kube-apiserver", t.extensions.MigrateAfterKubeAPIServer, leftoversGone)
	afterKAPIMigrated := g.wait("Waiting until extensions that should be handled after kube-apiserver have been migrated",
		t.extensions.WaitMigrateAfterKubeAPIServer, afterKAPI)
	afterKAPIDeleted := g.wait("Deleting extensions after kube-apiserver", t.extensions.DestroyAfterKubeAPIServer, afterKAPIMigrated)
	g.deleteNamespace(t, g.wait("Waiting until extensions that should be handled after kube-apiserver have been deleted",
		t.extensions.WaitCleanupAfterKubeAPIServer, afterKAPIDeleted))
	return g.Graph
}

// forceDeleteGraph returns gardenlet's flow for a shoot that cannot be deleted normally, with the
// names and dependencies of gardenlet's reconciler_force_delete.go: all extension objects, then all
// ManagedResources and their finalizers, then the namespace with everything in it. The flow
// neither connects to the shoot nor touches machines.
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
