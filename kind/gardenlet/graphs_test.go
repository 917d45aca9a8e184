package gardenlet

import (
	"slices"
	"testing"

	"github.com/gardener/gardener/pkg/utils/flow"
)

// without checks that the flow has none of the tasks.
func without(t *testing.T, newGraph func(tasks) *flow.Graph, change func(*tasks), names ...string) {
	t.Helper()
	all := ended(t, newGraph, change)
	for _, name := range names {
		if slices.Contains(all, name) {
			t.Errorf("%s is part of the flow", name)
		}
	}
}

// While a shoot is hibernated, extensions are reconciled before the nodes stop, and nothing waits
// for nodes.
func TestHibernationOrder(t *testing.T) {
	ordered(t, reconcileGraph, hibernating,
		`deployResourceManager deployShootAccess deployExtensions waitUntilExtensionsReady deployOperatingSystemConfig
		 waitUntilOperatingSystemConfigReady deployWorker waitUntilWorkerReady hibernateControlPlane`,
		`hibernateControlPlane deployExtensionsBeforeKAPI waitUntilExtensionsBeforeKAPIReady`,
		`deployShootAccess deleteStaleExtensions`,
	)
	without(t, reconcileGraph, hibernating, "waitUntilResourceManagerReady", "deployNodeAgentResources", "waitUntilOperatingSystemConfigApplied",
		"waitUntilStaleExtensionsDeleted", "waitUntilStaleOperatingSystemConfigDeleted")
}

func TestWorkerlessShootHasNoNodes(t *testing.T) {
	nodes := []string{"deployOperatingSystemConfig", "deployWorker", "deployNodeAgentResources", "deployExtensionsAfterWorker",
		"destroyWorker", "destroyOperatingSystemConfig", "migrateOperatingSystemConfig"}
	ordered(t, reconcileGraph, workerless, "deployShootAccess deployExtensions waitUntilExtensionsReady")
	without(t, reconcileGraph, workerless, nodes...)
	ordered(t, deleteGraph, workerless, "deployShootAccess deleteManagedResources destroyExtensionsBeforeKAPI deleteCluster")
	without(t, deleteGraph, workerless, nodes...)
	without(t, migrateGraph, workerless, nodes...)
}

func TestMigrationOrder(t *testing.T) {
	const end = `waitUntilShootManagedResourcesDeleted migrateExtensionsAfterKAPI waitUntilExtensionsAfterKAPIMigrated
		destroyExtensionsAfterKAPI waitUntilExtensionsAfterKAPIDeleted deleteNamespace waitUntilNamespaceDeleted deleteCluster`
	ordered(t, migrateGraph, unchanged,
		`deployNamespace deployResourceManager waitUntilResourceManagerReady deployShootAccess keepManagedResources
		 deleteManagedResources waitUntilManagedResourcesDeleted migrateOperatingSystemConfig waitUntilOperatingSystemConfigMigrated
		 persistShootState destroyOperatingSystemConfig waitUntilOperatingSystemConfigDeleted destroyExtensionsBeforeKAPI
		 waitUntilExtensionsBeforeKAPIDeleted `+end,
		`waitUntilManagedResourcesDeleted migrateExtensionsBeforeKAPI waitUntilExtensionsBeforeKAPIMigrated destroyExtensionsBeforeKAPI`,
		`waitUntilOperatingSystemConfigMigrated deleteStaleExtensions waitUntilStaleExtensionsDeleted waitUntilShootManagedResourcesDeleted`,
	)
	without(t, migrateGraph, unchanged, "destroyWorker", "destroyResourceManager")
	without(t, migrateGraph, terminating, "deployNamespace", "deployResourceManager", "deployShootAccess", "keepManagedResources")
}

func TestForceDeletionOrder(t *testing.T) {
	ordered(t, forceDeleteGraph, unchanged,
		`deleteExtensionObjects waitUntilExtensionObjectsDeleted dropManagedResources forceDeleteManagedResources
		 waitUntilAllManagedResourcesDeleted deleteCluster deleteKubernetesResources deleteNamespace waitUntilNamespaceDeleted`,
		`deleteNamespace deleteShootState`,
	)
	without(t, forceDeleteGraph, unchanged, "deployNamespace", "deployShootAccess", "destroyWorker", "waitUntilShootManagedResourcesDeleted")
}
