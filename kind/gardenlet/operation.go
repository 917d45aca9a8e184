package gardenlet

import (
	"context"
	"fmt"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
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

// shootOperation is one run of a flow: gardenlet's Botanist for the shoot, and the emulated parts.
type shootOperation struct {
	*botanist.Botanist
	workers         workers
	resourceManager gardener.ResourceManager
	// shootKubeconfig is for the shoot while its API server runs.
	shootKubeconfig []byte
	// namespaceTerminating means that the shoot's namespace is being deleted.
	namespaceTerminating bool
}

// prepare corresponds to gardenlet's prepareOperation: it completes the shoot and builds the
// Botanist with the components that the flows use.
func (g *Gardenlet) prepare(ctx context.Context, shoot *gardencorev1beta1.Shoot, p process) (*shootOperation, error) {
	if shoot.Name != g.Name {
		return nil, fmt.Errorf("this gardenlet drives only shoot %s", g.Name)
	}
	shoot, err := g.complete(ctx, shoot, p)
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
		WithProjectName(project).
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
	o.resourceManager.Stopped = o.apiServerStopped()
	o.useOperatingSystemConfigs()
	o.workers = g.workers(o)
	namespace := &corev1.Namespace{}
	key := client.ObjectKey{Name: shootInfo.ControlPlaneNamespace}
	if err := g.Seed.Client().Get(ctx, key, namespace); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("read namespace %s: %w", key.Name, err)
	}
	o.namespaceTerminating = namespace.DeletionTimestamp != nil
	return o, nil
}
