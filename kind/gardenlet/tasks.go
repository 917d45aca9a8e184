package gardenlet

import (
	"context"
	"time"

	"github.com/gardener/gardener/pkg/utils/flow"
)

// How gardenlet wraps tasks that write objects.
const (
	deployInterval = 5 * time.Second
	deployTimeout  = 30 * time.Second
)

const (
	// leftoverTimeout bounds how long a ManagedResource for the shoot may be left after its extension is gone.
	leftoverTimeout = 30 * time.Second
	// resourcesTimeout bounds the deletion of gardenlet's ManagedResources, and of the namespace.
	resourcesTimeout = 5 * time.Minute
)

// tasks are the steps of which the flows consist. Each is the function that gardenlet calls, or the emulation of it.
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

	// terminating says that the namespace is being deleted already: nothing can be created in it any more.
	terminating bool
}

// tasks returns the steps for this operation.
func (o *shootOperation) tasks() tasks {
	var (
		seed       = o.SeedClientSet.Client()
		extensions = o.Shoot.Components.Extensions.Extension
		configs    = o.Shoot.Components.Extensions.OperatingSystemConfig
	)
	return tasks{
		terminating: o.namespaceTerminating,

		deployNamespace:            o.DeployControlPlaneNamespace,
		deleteNamespace:            o.DeleteSeedNamespace,
		waitUntilNamespaceDeleted:  o.WaitUntilSeedNamespaceDeleted,
		deployReferencedResources:  o.DeployReferencedResources,
		destroyReferencedResources: o.DestroyReferencedResources,
		deployShootAccess:          o.deployShootAccess,
		deleteCluster:              o.deleteCluster,

		deployResourceManager:         func(ctx context.Context) error { return o.resourceManager.Deploy(ctx, seed) },
		waitUntilResourceManagerReady: func(ctx context.Context) error { return o.resourceManager.Wait(ctx, seed) },
		destroyResourceManager:        func(ctx context.Context) error { return o.resourceManager.Destroy(ctx, seed) },

		deployExtensionsBeforeKAPI:           o.DeployExtensionsBeforeKubeAPIServer,
		waitUntilExtensionsBeforeKAPIReady:   extensions.WaitBeforeKubeAPIServer,
		deployExtensions:                     o.DeployExtensionsAfterKubeAPIServer,
		waitUntilExtensionsReady:             extensions.WaitAfterKubeAPIServer,
		deployExtensionsAfterWorker:          o.DeployExtensionsAfterWorker,
		waitUntilExtensionsAfterWorkerReady:  extensions.WaitAfterWorker,
		deleteStaleExtensions:                extensions.DeleteStaleResources,
		waitUntilStaleExtensionsDeleted:      extensions.WaitCleanupStaleResources,
		destroyExtensionsBeforeKAPI:          extensions.DestroyBeforeKubeAPIServer,
		waitUntilExtensionsBeforeKAPIDeleted: extensions.WaitCleanupBeforeKubeAPIServer,
		destroyExtensionsAfterKAPI:           extensions.DestroyAfterKubeAPIServer,
		waitUntilExtensionsAfterKAPIDeleted:  extensions.WaitCleanupAfterKubeAPIServer,

		deployOperatingSystemConfig:           o.DeployOperatingSystemConfig,
		waitUntilOperatingSystemConfigReady:   configs.Wait,
		destroyOperatingSystemConfig:          configs.Destroy,
		waitUntilOperatingSystemConfigDeleted: configs.WaitCleanup,
		deployNodeAgentResources:              o.DeployManagedResourceForGardenerNodeAgent,
		waitUntilOperatingSystemConfigApplied: func(ctx context.Context) error {
			return o.WaitUntilOperatingSystemConfigUpdatedForAllWorkerPools(ctx, false)
		},

		deployWorker:         o.workers.deploy,
		waitUntilWorkerReady: o.workers.wait,
		destroyWorker:        o.workers.destroy,
		waitUntilWorkerGone:  o.workers.waitCleanup,

		deleteManagedResources:                o.DeleteManagedResources,
		waitUntilManagedResourcesDeleted:      o.WaitUntilManagedResourcesDeleted,
		waitUntilShootManagedResourcesDeleted: o.WaitUntilShootManagedResourcesDeleted,
	}
}

// deployed wraps a task like gardenlet does: it is tried again for a while if it fails.
func deployed(fn flow.TaskFn) flow.TaskFn {
	return fn.RetryUntilTimeout(deployInterval, deployTimeout)
}
