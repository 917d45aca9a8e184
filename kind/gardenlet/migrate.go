package gardenlet

import (
	"context"

	"github.com/gardener/gardener/pkg/utils/flow"
	"github.com/gardener/gardener/pkg/utils/gardener/shootstate"
)

// migrateGraph returns gardenlet's flow that prepares a shoot for its move to another seed, with
// the names and dependencies of gardenlet's reconciler_migrate.go. It deletes the ManagedResources
// but keeps their objects in the shoot, migrates the extensions, saves their state in the garden,
// and deletes the namespace. The shoot's machines and API server are not touched.
func migrateGraph(t tasks) *flow.Graph {
	g := newGraph("Shoot cluster preparation for migration")
	connected := g.connectForDeletion(t)

	keep := g.unless(t.terminating).wait("Configuring Managed Resources objects to be kept in the Shoot", t.keepManagedResources, connected)
	resources := g.wait("Deleting all Managed Resources from the Shoot's namespace", t.deleteManagedResources, keep)
	resourcesGone := g.wait("Waiting until ManagedResources are deleted",
		t.waitUntilManagedResourcesDeleted.Timeout(resourcesTimeout), resources)

	nodes := g.unless(t.workerless)
	configs := nodes.wait("Migrating extension resources", t.migrateOperatingSystemConfig, resourcesGone)
	configsMigrated := nodes.wait("Waiting until extension resources have been migrated", t.waitUntilOperatingSystemConfigMigrated, configs)
	extensions := g.wait("Migrating extensions before kube-apiserver", t.migrateExtensionsBeforeKAPI, resourcesGone)
	extensionsMigrated := g.wait("Waiting until extensions that should be handled before kube-apiserver have been migrated",
		t.waitUntilExtensionsBeforeKAPIMigrated, extensions)
	// gardenlet waits only for the configs; extensions save their state while they are reconciled.
	saved := g.wait("Persisting ShootState in garden cluster", t.persistShootState, configsMigrated)

	gone := g.deleteMigrated(t, saved, configsMigrated, extensionsMigrated)
	leftoversGone := g.wait("Waiting until shoot managed resources have been deleted",
		t.waitUntilShootManagedResourcesDeleted.Timeout(leftoverTimeout), gone)
	allGone := g.migrateExtensionsAfterKAPI(t, leftoversGone)
	deletion := g.deploy("Deleting shoot namespace in Seed", t.deleteNamespace, allGone)
	namespaceGone := g.wait("Waiting until shoot namespace in Seed has been deleted",
		t.waitUntilNamespaceDeleted.Timeout(resourcesTimeout), deletion)
	g.deploy("Deleting Cluster resource in Seed", t.deleteCluster, namespaceGone)
	return g.Graph
}

// deleteMigrated adds the deletion of migrated resources. They have no finalizers, so no controller
// acts on them.
func (g graph) deleteMigrated(t tasks, saved, configsMigrated, extensionsMigrated flow.TaskID) flow.TaskIDs {
	nodes := g.unless(t.workerless)
	configs := nodes.wait("Deleting extension resources from the Shoot namespace", t.destroyOperatingSystemConfig, saved)
	configsGone := nodes.wait("Waiting until extension resources have been deleted", t.waitUntilOperatingSystemConfigDeleted, configs)
	extensions := g.wait("Deleting extensions before kube-apiserver", t.destroyExtensionsBeforeKAPI, configsGone, extensionsMigrated)
	extensionsGone := g.wait("Waiting until extensions that should be handled before kube-apiserver have been deleted",
		t.waitUntilExtensionsBeforeKAPIDeleted, extensions)
	stale := g.wait("Deleting stale extensions", t.deleteStaleExtensions, configsMigrated)
	staleGone := g.wait("Waiting until all stale extensions have been deleted", t.waitUntilStaleExtensionsDeleted, stale)
	return flow.NewTaskIDs(configsGone, extensionsGone, staleGone)
}

// migrateExtensionsAfterKAPI adds the extensions that are migrated after kube-apiserver is gone.
func (g graph) migrateExtensionsAfterKAPI(t tasks, leftoversGone flow.TaskID) flow.TaskID {
	extensions := g.wait("Migrating extensions after kube-apiserver", t.migrateExtensionsAfterKAPI, leftoversGone)
	migrated := g.wait("Waiting until extensions that should be handled after kube-apiserver have been migrated",
		t.waitUntilExtensionsAfterKAPIMigrated, extensions)
	deletion := g.wait("Deleting extensions after kube-apiserver", t.destroyExtensionsAfterKAPI, migrated)
	return g.wait("Waiting until extensions that should be handled after kube-apiserver have been deleted",
		t.waitUntilExtensionsAfterKAPIDeleted, deletion)
}

// persistShootState saves the extensions' status.state in a ShootState of the garden, which must
// last until the shoot is restored.
func (o *shootOperation) persistShootState(ctx context.Context) error {
	return shootstate.Deploy(ctx, o.Clock, o.GardenClient, o.SeedClientSet.Client(), o.Shoot.GetInfo(), o.Shoot.ControlPlaneNamespace, false)
}

// deleteShootState deletes the ShootState. A missing one is no error.
func (o *shootOperation) deleteShootState(ctx context.Context) error {
	return shootstate.Delete(ctx, o.GardenClient, o.Shoot.GetInfo())
}
