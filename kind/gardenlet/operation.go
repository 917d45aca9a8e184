package gardenlet

import (
	"context"
	"fmt"

	v1beta1helper "github.com/gardener/gardener/pkg/api/core/v1beta1/helper"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/extensions"
	"github.com/gardener/gardener/pkg/gardenlet/operation"
	"github.com/gardener/gardener/pkg/gardenlet/operation/botanist"
	seedpkg "github.com/gardener/gardener/pkg/gardenlet/operation/seed"
	shootpkg "github.com/gardener/gardener/pkg/gardenlet/operation/shoot"
	gardenerutils "github.com/gardener/gardener/pkg/utils/gardener"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/kind/gardener"
)

// shootOperation is one run of a flow: gardenlet's Botanist for the shoot, and the emulated rest.
type shootOperation struct {
	*botanist.Botanist
	workers         workers
	resourceManager gardener.ResourceManager
	shootKubeconfig []byte
	// namespaceTerminating says that the shoot's namespace is being deleted.
	namespaceTerminating bool
}

// prepare is gardenlet's prepareOperation: it completes the shoot and builds the Botanist with the components that the
// flows use.
func (g *Gardenlet) prepare(ctx context.Context, shoot *gardencorev1beta1.Shoot) (*shootOperation, error) {
	shoot, err := g.complete(ctx, shoot)
	if err != nil {
		return nil, err
	}
	seed, err := seedpkg.NewBuilder().WithSeedObject(gardener.NewSeed()).Build(ctx)
	if err != nil {
		return nil, err
	}
	shootInfo, err := shootpkg.NewBuilder().
		WithShootObject(shoot).
		WithCloudProfileObject(cloudProfile()).
		WithSeedObject(seed.GetInfo()).
		WithProjectName("local").
		WithInternalDomain(&gardenerutils.Domain{Domain: "internal.test"}).
		WithoutShootCredentials().
		Build(ctx, g.Garden)
	if err != nil {
		return nil, err
	}
	shootInfo.Networks = &shootpkg.Networks{}

	o := &shootOperation{
		Botanist: &botanist.Botanist{Operation: &operation.Operation{
			Clock: clock.RealClock{}, Logger: g.Log,
			GardenClient: g.Garden, SeedClientSet: g.Seed, ShootClientSet: g.Shoot,
			Seed: seed, Shoot: shootInfo,
		}},
		resourceManager: gardener.ShootResourceManager(shootInfo.ControlPlaneNamespace, g.ResourceManagerImage, g.ShootKubeconfig),
		shootKubeconfig: g.ShootKubeconfig,
	}
	o.Shoot.Components.Extensions.Extension, err = o.DefaultExtension(ctx)
	if err != nil {
		return nil, fmt.Errorf("set up the component for extensions: %w", err)
	}
	o.useOperatingSystemConfigs()
	o.workers = g.workers(o)
	namespace := &corev1.Namespace{}
	if err := g.Seed.Client().Get(ctx, client.ObjectKey{Name: Namespace}, namespace); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("read namespace %s: %w", Namespace, err)
	}
	o.namespaceTerminating = namespace.DeletionTimestamp != nil
	return o, nil
}

// complete returns a copy of the shoot with what a gardener-apiserver and earlier operations would have filled in. The
// status comes from the Cluster resource of the last operation.
func (g *Gardenlet) complete(ctx context.Context, shoot *gardencorev1beta1.Shoot) (*gardencorev1beta1.Shoot, error) {
	shoot = shoot.DeepCopy()
	cluster, err := extensions.GetCluster(ctx, g.Seed.Client(), Namespace)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("read cluster %s of the last operation: %w", Namespace, err)
	}
	if err == nil && cluster.Shoot != nil {
		shoot.Status = cluster.Shoot.Status
		shoot.CreationTimestamp = cluster.Shoot.CreationTimestamp
	} else {
		shoot.CreationTimestamp = *now()
	}
	if shoot.Spec.Kubernetes.Version == "" {
		shoot.Spec.Kubernetes.Version = g.Shoot.Version()
	}
	shoot.Status.TechnicalID = Namespace
	shoot.Status.UID = shoot.UID
	shoot.Status.SeedName = shoot.Spec.SeedName
	shoot.Status.Gardener = gardencorev1beta1.Gardener{Name: "gardenlet", Version: gardener.Version}
	shoot.Status.ObservedGeneration = shoot.Generation
	return shoot, nil
}

// start records in the Cluster resource that the operation begins.
func (o *shootOperation) start(ctx context.Context) error {
	shoot := o.Shoot.GetInfo()
	return o.sync(ctx, gardencorev1beta1.LastOperation{
		Type:        v1beta1helper.ComputeOperationType(shoot.ObjectMeta, shoot.Status.LastOperation),
		State:       gardencorev1beta1.LastOperationStateProcessing,
		Description: "Operation on the Shoot cluster in progress.",
	})
}

// finish records how the operation ended. A deleted shoot has no Cluster resource any more.
func (o *shootOperation) finish(ctx context.Context, flowErr error) error {
	operationType := o.Shoot.GetInfo().Status.LastOperation.Type
	if flowErr != nil {
		return o.sync(ctx, gardencorev1beta1.LastOperation{
			Type: operationType, State: gardencorev1beta1.LastOperationStateError, Progress: 50, Description: flowErr.Error(),
		})
	}
	if operationType == gardencorev1beta1.LastOperationTypeDelete {
		return nil
	}
	return o.sync(ctx, gardencorev1beta1.LastOperation{
		Type:        operationType,
		State:       gardencorev1beta1.LastOperationStateSucceeded,
		Progress:    100,
		Description: "Shoot cluster has been successfully reconciled.",
	})
}

// sync writes the Cluster resource with the given last operation of the shoot, as gardenlet does.
func (o *shootOperation) sync(ctx context.Context, lastOperation gardencorev1beta1.LastOperation) error {
	lastOperation.LastUpdateTime = *now()
	shoot := o.Shoot.GetInfo().DeepCopy()
	shoot.Status.LastOperation = &lastOperation
	o.Shoot.SetInfo(shoot)
	namespace := o.Shoot.ControlPlaneNamespace
	err := extensions.SyncClusterResourceToSeed(ctx, o.SeedClientSet.Client(), namespace, shoot, o.Shoot.CloudProfile, o.Seed.GetInfo())
	if err != nil {
		return fmt.Errorf("sync cluster %s to the seed: %w", namespace, err)
	}
	return nil
}
