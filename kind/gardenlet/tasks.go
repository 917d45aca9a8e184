package gardenlet

import (
	"context"
	"time"

	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"github.com/gardener/gardener/pkg/component/extensions/extension"
	"github.com/gardener/gardener/pkg/component/extensions/operatingsystemconfig"
	"github.com/gardener/gardener/pkg/gardenlet/controller/shoot/shoot"
	"github.com/gardener/gardener/pkg/gardenlet/operation/botanist"
	"github.com/gardener/gardener/pkg/utils/flow"
	"github.com/gardener/gardener/pkg/utils/gardener/shootstate"
	kubernetesutils "github.com/gardener/gardener/pkg/utils/kubernetes"
	"github.com/gardener/gardener/pkg/utils/managedresources"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// A task that writes is retried with these limits. gardenlet has the same timeout, and an
	// interval of five seconds.
	deployInterval, deployTimeout = time.Second, 30 * time.Second
	// leftoverTimeout bounds how long a ManagedResource may exist after its extension is gone.
	leftoverTimeout = 30 * time.Second
	// resourcesTimeout bounds the deletion of gardenlet's ManagedResources and of the namespace.
	resourcesTimeout   = 5 * time.Minute
	hibernationTimeout = 2 * time.Minute // bounds the stop of gardener-resource-manager
)

// tasks are the steps of the flows. Each is gardenlet's function or its emulation.
type tasks struct {
	extensions extension.Interface
	configs    operatingsystemconfig.Interface

	deployNamespace, deleteNamespace, waitUntilNamespaceDeleted                      flow.TaskFn
	restoreSecrets, deployReferencedResources, destroyReferencedResources            flow.TaskFn
	deployResourceManager, waitUntilResourceManagerReady, destroyResourceManager     flow.TaskFn
	deployShootAccess, deleteCluster                                                 flow.TaskFn
	deployExtensionsBeforeKAPI, deployExtensions, deployExtensionsAfterWorker        flow.TaskFn
	deployOperatingSystemConfig, deployNodeAgentResources, deploySystemResources     flow.TaskFn
	waitUntilOperatingSystemConfigApplied                                            flow.TaskFn
	deployWorker, waitUntilWorkerReady, destroyWorker, waitUntilWorkerGone           flow.TaskFn
	deleteManagedResources, waitUntilManagedResourcesDeleted                         flow.TaskFn
	waitUntilShootManagedResourcesDeleted                                            flow.TaskFn
	hibernateControlPlane, keepManagedResources, persistShootState, deleteShootState flow.TaskFn
	// Force-deletion.
	deleteExtensionObjects, waitUntilExtensionObjectsDeleted       flow.TaskFn
	dropManagedResources, forceDeleteManagedResources              flow.TaskFn
	waitUntilAllManagedResourcesDeleted, deleteKubernetesResources flow.TaskFn

	hibernated, workerless bool // the shoot is to be hibernated; the shoot has no worker pools
	terminating            bool // the namespace is being deleted, so nothing can be created in it
}

// tasks returns the steps of this operation. For a hibernated shoot, deployWorker stops machines.
func (o *shootOperation) tasks() tasks {
	seed, namespace := o.SeedClientSet.Client(), o.Shoot.ControlPlaneNamespace
	machines := workers{o}
	cleaner := shoot.NewCleaner(o.Logger, seed, o.GardenClient, namespace)
	t := tasks{
		extensions: o.Shoot.Components.Extensions.Extension, configs: o.Shoot.Components.Extensions.OperatingSystemConfig,
		hibernated: o.Shoot.HibernationEnabled, workerless: o.Shoot.IsWorkerless, terminating: o.namespaceTerminating,

		deployNamespace:               flow.Sequential(o.DeployControlPlaneNamespace, o.deployNetworkPolicies),
		deleteNamespace:               o.DeleteSeedNamespace,
		waitUntilNamespaceDeleted:     o.waitUntilNamespaceDeleted,
		restoreSecrets:                o.restoreSecrets,
		deployReferencedResources:     o.DeployReferencedResources,
		destroyReferencedResources:    o.DestroyReferencedResources,
		deployShootAccess:             o.deployShootAccess,
		hibernateControlPlane:         o.hibernateControlPlane,
		deleteCluster:                 o.deleteCluster,
		persistShootState:             o.persistShootState,
		deleteShootState:              o.deleteShootState,
		deployResourceManager:         func(ctx context.Context) error { return o.resourceManager.Deploy(ctx, seed) },
		waitUntilResourceManagerReady: func(ctx context.Context) error { return o.resourceManager.Wait(ctx, seed) },
		destroyResourceManager:        func(ctx context.Context) error { return o.resourceManager.Destroy(ctx, seed) },

		keepManagedResources:                  o.KeepObjectsForManagedResources,
		deleteManagedResources:                o.DeleteManagedResources,
		waitUntilManagedResourcesDeleted:      o.WaitUntilManagedResourcesDeleted,
		waitUntilShootManagedResourcesDeleted: o.WaitUntilShootManagedResourcesDeleted,

		deployExtensionsBeforeKAPI:  o.DeployExtensionsBeforeKubeAPIServer,
		deployExtensions:            flow.Sequential(machines.hold, o.DeployExtensionsAfterKubeAPIServer),
		deployExtensionsAfterWorker: o.DeployExtensionsAfterWorker,

		deployOperatingSystemConfig: o.DeployOperatingSystemConfig,
		deployNodeAgentResources:    o.DeployManagedResourceForGardenerNodeAgent,
		deploySystemResources:       o.deploySystemResources,
		waitUntilOperatingSystemConfigApplied: func(ctx context.Context) error {
			return o.WaitUntilOperatingSystemConfigUpdatedForAllWorkerPools(ctx, false)
		},
		deployWorker: machines.deploy, waitUntilWorkerReady: machines.wait,
		destroyWorker: machines.destroy, waitUntilWorkerGone: machines.waitCleanup,

		deleteExtensionObjects:              cleaner.DeleteExtensionObjects,
		waitUntilExtensionObjectsDeleted:    cleaner.WaitUntilExtensionObjectsDeleted,
		dropManagedResources:                cleaner.SetKeepObjectsForManagedResources,
		forceDeleteManagedResources:         cleaner.DeleteManagedResources,
		waitUntilAllManagedResourcesDeleted: cleaner.WaitUntilManagedResourcesDeleted,
		deleteKubernetesResources:           cleaner.DeleteKubernetesResources,
	}
	if o.Shoot.HibernationEnabled {
		t.deployWorker, t.waitUntilWorkerReady = t.destroyWorker, t.waitUntilWorkerGone
	}
	return t
}

// persistShootState saves the extensions' status.state in a ShootState of the garden.
func (o *shootOperation) persistShootState(ctx context.Context) error {
	return shootstate.Deploy(ctx, o.Clock, o.GardenClient, o.SeedClientSet.Client(), o.Shoot.GetInfo(), o.Shoot.ControlPlaneNamespace, false)
}

func (o *shootOperation) deleteShootState(ctx context.Context) error {
	return shootstate.Delete(ctx, o.GardenClient, o.Shoot.GetInfo())
}

// deleteCluster deletes the Cluster resource, the last trace of a shoot in the seed.
func (o *shootOperation) deleteCluster(ctx context.Context) error {
	cluster := &extensionsv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: o.Shoot.ControlPlaneNamespace}}
	return client.IgnoreNotFound(o.SeedClientSet.Client().Delete(ctx, cluster))
}

// pollInterval replaces gardenlet's intervals of two and five seconds, which suit hundreds of
// shoots. A flow has about six waits in a row, and the scenarios run dozens of flows.
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
