package gardenlet

import (
	"context"
	"time"

	"github.com/gardener/gardener/pkg/component/extensions/extension"
	"github.com/gardener/gardener/pkg/gardenlet/controller/shoot/shoot"
	"github.com/gardener/gardener/pkg/gardenlet/operation/botanist"
	"github.com/gardener/gardener/pkg/utils/flow"
	kubernetesutils "github.com/gardener/gardener/pkg/utils/kubernetes"
	"github.com/gardener/gardener/pkg/utils/managedresources"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// gardenlet's retries of tasks that write objects.
const (
	deployInterval = 5 * time.Second
	deployTimeout  = 30 * time.Second
)

const (
	// leftoverTimeout bounds how long a ManagedResource for the shoot may exist after its extension is
	// gone.
	leftoverTimeout = 30 * time.Second
	// resourcesTimeout bounds the deletion of gardenlet's ManagedResources and of the namespace.
	resourcesTimeout = 5 * time.Minute
	// hibernationTimeout bounds how long gardener-resource-manager may take to stop.
	hibernationTimeout = 2 * time.Minute
)

// tasks are the steps of the flows. Each is gardenlet's function or its emulation.
type tasks struct {
	deployNamespace, deleteNamespace, waitUntilNamespaceDeleted            flow.TaskFn
	deployReferencedResources, destroyReferencedResources                  flow.TaskFn
	deployResourceManager, waitUntilResourceManagerReady                   flow.TaskFn
	destroyResourceManager                                                 flow.TaskFn
	deployShootAccess                                                      flow.TaskFn
	deployExtensionsBeforeKAPI, waitUntilExtensionsBeforeKAPIReady         flow.TaskFn
	deployExtensions, waitUntilExtensionsReady                             flow.TaskFn
	deployExtensionsAfterWorker, waitUntilExtensionsAfterWorkerReady       flow.TaskFn
	deleteStaleExtensions, waitUntilStaleExtensionsDeleted                 flow.TaskFn
	destroyExtensionsBeforeKAPI, waitUntilExtensionsBeforeKAPIDeleted      flow.TaskFn
	destroyExtensionsAfterKAPI, waitUntilExtensionsAfterKAPIDeleted        flow.TaskFn
	deployOperatingSystemConfig, waitUntilOperatingSystemConfigReady       flow.TaskFn
	destroyOperatingSystemConfig, waitUntilOperatingSystemConfigDeleted    flow.TaskFn
	deployNodeAgentResources, waitUntilOperatingSystemConfigApplied        flow.TaskFn
	deployWorker, waitUntilWorkerReady, destroyWorker, waitUntilWorkerGone flow.TaskFn
	deleteManagedResources, waitUntilManagedResourcesDeleted               flow.TaskFn
	waitUntilShootManagedResourcesDeleted                                  flow.TaskFn
	deleteCluster                                                          flow.TaskFn

	// Hibernation.
	hibernateControlPlane                                                        flow.TaskFn
	deleteStaleOperatingSystemConfig, waitUntilStaleOperatingSystemConfigDeleted flow.TaskFn
	// Migration and restoration.
	keepManagedResources, persistShootState, deleteShootState            flow.TaskFn
	migrateOperatingSystemConfig, waitUntilOperatingSystemConfigMigrated flow.TaskFn
	migrateExtensionsBeforeKAPI, waitUntilExtensionsBeforeKAPIMigrated   flow.TaskFn
	migrateExtensionsAfterKAPI, waitUntilExtensionsAfterKAPIMigrated     flow.TaskFn
	// Force-deletion.
	deleteExtensionObjects, waitUntilExtensionObjectsDeleted       flow.TaskFn
	dropManagedResources, forceDeleteManagedResources              flow.TaskFn
	waitUntilAllManagedResourcesDeleted, deleteKubernetesResources flow.TaskFn

	// hibernated means that the shoot is to be hibernated, workerless that it has no worker pools.
	hibernated, workerless bool
	// terminating means that the namespace is being deleted, so nothing can be created in it.
	terminating bool
}

// tasks returns the steps of this operation.
func (o *shootOperation) tasks() tasks {
	t := tasks{
		hibernated:  o.Shoot.HibernationEnabled,
		workerless:  o.Shoot.IsWorkerless,
		terminating: o.namespaceTerminating,

		deployNamespace:            o.DeployControlPlaneNamespace,
		deleteNamespace:            o.DeleteSeedNamespace,
		waitUntilNamespaceDeleted:  o.waitUntilNamespaceDeleted,
		deployReferencedResources:  o.DeployReferencedResources,
		destroyReferencedResources: o.DestroyReferencedResources,
		deployShootAccess:          o.deployShootAccess,
		hibernateControlPlane:      o.hibernateControlPlane,
		deleteCluster:              o.deleteCluster,
		persistShootState:          o.persistShootState,
		deleteShootState:           o.deleteShootState,

		keepManagedResources:                  o.KeepObjectsForManagedResources,
		deleteManagedResources:                o.DeleteManagedResources,
		waitUntilManagedResourcesDeleted:      o.WaitUntilManagedResourcesDeleted,
		waitUntilShootManagedResourcesDeleted: o.WaitUntilShootManagedResourcesDeleted,
	}
	o.addResourceManager(&t)
	o.addExtensions(&t)
	o.addNodes(&t)
	o.addCleaner(&t)
	return t
}

func (o *shootOperation) addResourceManager(t *tasks) {
	seed := o.SeedClientSet.Client()
	t.deployResourceManager = func(ctx context.Context) error { return o.resourceManager.Deploy(ctx, seed) }
	t.waitUntilResourceManagerReady = func(ctx context.Context) error { return o.resourceManager.Wait(ctx, seed) }
	t.destroyResourceManager = func(ctx context.Context) error { return o.resourceManager.Destroy(ctx, seed) }
}

// addExtensions adds the tasks for Extensions. When a shoot is restored, the first three take their
// state from the ShootState.
func (o *shootOperation) addExtensions(t *tasks) {
	extensions := o.Shoot.Components.Extensions.Extension
	t.deployExtensionsBeforeKAPI = o.DeployExtensionsBeforeKubeAPIServer
	t.deployExtensions = o.DeployExtensionsAfterKubeAPIServer
	t.deployExtensionsAfterWorker = o.DeployExtensionsAfterWorker
	t.waitUntilExtensionsBeforeKAPIReady = extensions.WaitBeforeKubeAPIServer
	t.waitUntilExtensionsReady = extensions.WaitAfterKubeAPIServer
	t.waitUntilExtensionsAfterWorkerReady = extensions.WaitAfterWorker
	t.deleteStaleExtensions = extensions.DeleteStaleResources
	t.waitUntilStaleExtensionsDeleted = extensions.WaitCleanupStaleResources
	t.destroyExtensionsBeforeKAPI = extensions.DestroyBeforeKubeAPIServer
	t.waitUntilExtensionsBeforeKAPIDeleted = extensions.WaitCleanupBeforeKubeAPIServer
	t.destroyExtensionsAfterKAPI = extensions.DestroyAfterKubeAPIServer
	t.waitUntilExtensionsAfterKAPIDeleted = extensions.WaitCleanupAfterKubeAPIServer
	t.migrateExtensionsBeforeKAPI = extensions.MigrateBeforeKubeAPIServer
	t.waitUntilExtensionsBeforeKAPIMigrated = extensions.WaitMigrateBeforeKubeAPIServer
	t.migrateExtensionsAfterKAPI = extensions.MigrateAfterKubeAPIServer
	t.waitUntilExtensionsAfterKAPIMigrated = extensions.WaitMigrateAfterKubeAPIServer
}

// addNodes adds the tasks for machines and their operating system configs. A hibernated shoot has
// no machines.
func (o *shootOperation) addNodes(t *tasks) {
	configs := o.Shoot.Components.Extensions.OperatingSystemConfig
	t.deployOperatingSystemConfig = o.DeployOperatingSystemConfig
	t.waitUntilOperatingSystemConfigReady = configs.Wait
	t.destroyOperatingSystemConfig = configs.Destroy
	t.waitUntilOperatingSystemConfigDeleted = configs.WaitCleanup
	t.deleteStaleOperatingSystemConfig = configs.DeleteStaleResources
	t.waitUntilStaleOperatingSystemConfigDeleted = configs.WaitCleanupStaleResources
	t.migrateOperatingSystemConfig = configs.Migrate
	t.waitUntilOperatingSystemConfigMigrated = configs.WaitMigrate
	t.deployNodeAgentResources = o.DeployManagedResourceForGardenerNodeAgent
	t.waitUntilOperatingSystemConfigApplied = func(ctx context.Context) error {
		return o.WaitUntilOperatingSystemConfigUpdatedForAllWorkerPools(ctx, false)
	}

	t.deployWorker, t.waitUntilWorkerReady = o.workers.deploy, o.workers.wait
	t.destroyWorker, t.waitUntilWorkerGone = o.workers.destroy, o.workers.waitCleanup
	if o.Shoot.HibernationEnabled {
		t.deployWorker, t.waitUntilWorkerReady = o.workers.destroy, o.workers.waitCleanup
	}
}

// addCleaner adds gardenlet's cleaner for force-deletion.
func (o *shootOperation) addCleaner(t *tasks) {
	cleaner := shoot.NewCleaner(o.Logger, o.SeedClientSet.Client(), o.GardenClient, o.Shoot.ControlPlaneNamespace)
	t.deleteExtensionObjects = cleaner.DeleteExtensionObjects
	t.waitUntilExtensionObjectsDeleted = cleaner.WaitUntilExtensionObjectsDeleted
	t.dropManagedResources = cleaner.SetKeepObjectsForManagedResources
	t.forceDeleteManagedResources = cleaner.DeleteManagedResources
	t.waitUntilAllManagedResourcesDeleted = cleaner.WaitUntilManagedResourcesDeleted
	t.deleteKubernetesResources = cleaner.DeleteKubernetesResources
}

// pollInterval replaces gardenlet's two and five seconds, which suit hundreds of shoots: a flow has
// about six waits in a row, and the scenarios run dozens of flows. Thresholds and timeouts are
// durations and do not change.
const pollInterval = 200 * time.Millisecond

func init() {
	extension.DefaultInterval = pollInterval
	botanist.IntervalWaitOperatingSystemConfigUpdated = pollInterval
	managedresources.IntervalWait = pollInterval
	shoot.DefaultInterval = pollInterval
}

// waitUntilNamespaceDeleted replaces gardenlet's WaitUntilSeedNamespaceDeleted, which polls only
// every five seconds. The flow adds the timeout.
func (o *shootOperation) waitUntilNamespaceDeleted(ctx context.Context) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: o.Shoot.ControlPlaneNamespace}}
	return kubernetesutils.WaitUntilResourceDeleted(ctx, o.SeedClientSet.Client(), namespace, pollInterval)
}
