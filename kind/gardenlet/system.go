package gardenlet

import (
	"context"
	"fmt"
	"net"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/component/shoot/system"
	"k8s.io/utils/ptr"

	"github.com/gardener-extensions/registry-cache/kind/gardener"
)

// deployNetworkPolicies deploys what gardenlet's controller for NetworkPolicies deploys into a new
// namespace. gardener-resource-manager adds the NetworkPolicies that follow from Services.
func (o *shootOperation) deployNetworkPolicies(ctx context.Context) error {
	return gardener.DeployNetworkPolicies(ctx, o.SeedClientSet.Client(), o.Shoot.ControlPlaneNamespace)
}

// deploySystemResources deploys gardenlet's ManagedResource with the NetworkPolicies of kube-system
// and the priority classes. Its ClusterRole for viewers is empty, since the testbed lists no API
// resources.
func (o *shootOperation) deploySystemResources(ctx context.Context) error {
	shoot := o.Shoot.GetInfo().DeepCopy()
	_, services, err := net.ParseCIDR(ptr.Deref(shoot.Spec.Networking.Services, ""))
	if err != nil {
		return fmt.Errorf("parse the Shoot's service network: %w", err)
	}
	shoot.Spec.Maintenance = &gardencorev1beta1.Maintenance{ // gardener-apiserver sets a random time window
		TimeWindow: &gardencorev1beta1.MaintenanceTimeWindow{Begin: "220000+0000", End: "230000+0000"},
	}
	return system.New(o.SeedClientSet.Client(), o.Shoot.ControlPlaneNamespace, system.Values{
		IsWorkerless: o.Shoot.IsWorkerless, KubernetesVersion: o.Shoot.KubernetesVersion, Object: shoot, ProjectName: project,
		ServiceNetworkCIDRs: []net.IPNet{*services},
	}).Deploy(ctx)
}
