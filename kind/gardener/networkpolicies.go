package gardener

import (
	"context"
	"fmt"

	resourcemanagerconfigv1alpha1 "github.com/gardener/gardener/pkg/apis/config/resourcemanager/v1alpha1"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"github.com/gardener/gardener/pkg/controller/networkpolicy"
	"github.com/gardener/gardener/pkg/controller/networkpolicy/hostnameresolver"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// DeployNetworkPolicies deploys the general NetworkPolicies of a seed into the namespaces, such as
// deny-all and allow-to-dns, with the reconciler that gardenlet runs for the namespaces garden,
// extension-* and those of shoots. SeedResourceManager adds the NetworkPolicies of Services.
//
// The testbed's pod network does not enforce them; scenarios evaluate them.
func DeployNetworkPolicies(ctx context.Context, seed client.Client, namespaces ...string) error {
	reconciler := networkPolicies(seed)
	for _, namespace := range namespaces {
		if _, err := reconciler.Reconcile(ctx, reconcile.Request{NamespacedName: client.ObjectKey{Name: namespace}}); err != nil {
			return fmt.Errorf("deploy the network policies of namespace %s: %w", namespace, err)
		}
	}
	return nil
}

// AddNetworkPolicies adds the controller that deploys these NetworkPolicies into each new
// namespace.
func AddNetworkPolicies(mgr manager.Manager) error {
	return networkPolicies(mgr.GetClient()).AddToManager(mgr, mgr)
}

func networkPolicies(seed client.Client) *networkpolicy.Reconciler {
	networks := NewSeed().Spec.Networks
	return &networkpolicy.Reconciler{
		RuntimeClient: seed, Resolver: hostnameresolver.NewNoOpProvider(),
		RuntimeNetworks: networkpolicy.RuntimeNetworkConfig{
			IPFamilies: []gardencorev1beta1.IPFamily{gardencorev1beta1.IPFamilyIPv4},
			Pods:       []string{networks.Pods}, Services: []string{networks.Services},
		},
	}
}

// networkPolicyController returns the configuration that gardenlet gives to the resource manager of
// a seed.
func networkPolicyController() resourcemanagerconfigv1alpha1.NetworkPolicyControllerConfig {
	selectors := []metav1.LabelSelector{{MatchLabels: map[string]string{corev1.LabelMetadataName: GardenNamespace}}}
	for _, role := range []string{v1beta1constants.GardenRoleShoot, v1beta1constants.GardenRoleExtension} {
		selectors = append(selectors, metav1.LabelSelector{MatchLabels: map[string]string{v1beta1constants.GardenRole: role}})
	}
	return resourcemanagerconfigv1alpha1.NetworkPolicyControllerConfig{Enabled: true, NamespaceSelectors: selectors}
}
