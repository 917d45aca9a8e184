package gardenlet

import (
	"context"
	"fmt"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/extensions"
	gardenerutils "github.com/gardener/gardener/pkg/utils/gardener"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/kind/gardener"
)

// landscape contains the objects of the garden, besides the Shoot, that a flow uses.
type landscape struct {
	seed           *gardencorev1beta1.Seed
	cloudProfile   *gardencorev1beta1.CloudProfile
	internalDomain *gardenerutils.Domain
	defaultDomains []*gardenerutils.Domain
}

// readLandscape reads what the flows need from the garden.
func readLandscape(ctx context.Context, garden client.Client, shoot *gardencorev1beta1.Shoot) (landscape, error) {
	seed := &gardencorev1beta1.Seed{}
	if err := garden.Get(ctx, client.ObjectKey{Name: gardener.SeedName}, seed); err != nil {
		return landscape{}, fmt.Errorf("read seed %s: %w", gardener.SeedName, err)
	}
	profile, err := gardenerutils.GetCloudProfile(ctx, garden, shoot)
	if err != nil {
		return landscape{}, fmt.Errorf("read the cloud profile of shoot %s: %w", client.ObjectKeyFromObject(shoot), err)
	}
	internal, err := gardenerutils.ReadGardenInternalDomain(ctx, garden, gardener.GardenNamespace, true, seed.Spec.DNS.Internal)
	if err != nil {
		return landscape{}, fmt.Errorf("read the internal domain: %w", err)
	}
	defaults, err := gardenerutils.ReadGardenDefaultDomains(ctx, garden, gardener.GardenNamespace, seed.Spec.DNS.Defaults)
	if err != nil {
		return landscape{}, fmt.Errorf("read the default domains: %w", err)
	}
	return landscape{seed: seed, cloudProfile: profile, internalDomain: internal, defaultDomains: defaults}, nil
}

// syncCluster writes the Cluster resource with the Shoot.
func (g *Gardenlet) syncCluster(ctx context.Context, shoot *gardencorev1beta1.Shoot, landscape landscape) error {
	namespace := Namespace(shoot.Name)
	if err := extensions.SyncClusterResourceToSeed(ctx, g.Seed.Client(), namespace, shoot, landscape.cloudProfile, landscape.seed); err != nil {
		return fmt.Errorf("sync cluster %s to the seed: %w", namespace, err)
	}
	return nil
}

// adapt returns the Shoot as the flows can run it on kind's machines. Their number is fixed, and
// gardener-node-agent must not configure kind's containerd (see worker).
func (g *Gardenlet) adapt(shoot *gardencorev1beta1.Shoot) *gardencorev1beta1.Shoot {
	shoot = g.withDefaults(shoot)
	for i := range shoot.Spec.Provider.Workers {
		shoot.Spec.Provider.Workers[i].CRI = nil
	}
	return shoot
}
