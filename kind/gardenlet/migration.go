package gardenlet

import "github.com/gardener/gardener/pkg/utils/flow"

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
	// As gardenlet does, do not wait for the extensions: their status already contains their state.
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
