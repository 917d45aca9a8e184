package gardenlet

import (
	"context"

	"github.com/gardener/gardener/pkg/component/shoot/system"

	"github.com/gardener-extensions/registry-cache/kind/gardener"
)

// deployNetworkPolicies deploys what gardenlet's controller for NetworkPolicies deploys into a new
// namespace. gardener-resource-manager adds those that follow from Services.
func (o *shootOperation) deployNetworkPolicies(ctx context.Context) error {
	return gardener.DeployNetworkPolicies(ctx, o.SeedClientSet.Client(), o.Shoot.ControlPlaneNamespace)
}

// deploySystemResources deploys gardenlet's ManagedResource with the NetworkPolicies of kube-system
// and the priority classes. Without a list of API resources, its ClusterRole for viewers is empty.
func (o *shootOperation) deploySystemResources(ctx context.Context) error {
	return system.New(o.SeedClientSet.Client(), o.Shoot.ControlPlaneNamespace, system.Values{
		IsWorkerless: o.Shoot.IsWorkerless, KubernetesVersion: o.Shoot.KubernetesVersion, Object: o.Shoot.GetInfo(), ProjectName: project,
	}).Deploy(ctx)
}
