package gardenlet

import "github.com/gardener/gardener/pkg/utils/flow"

// forceDeleteGraph returns gardenlet's flow for a shoot that cannot be deleted normally, with the
// names and dependencies of gardenlet's reconciler_force_delete.go: all extension objects, then all
// ManagedResources and their finalizers, then the namespace with everything in it. It neither
// connects to the shoot nor touches machines.
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
