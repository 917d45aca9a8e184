package gardener

import (
	"context"
	"fmt"

	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"github.com/gardener/gardener/pkg/component"
	"github.com/gardener/gardener/pkg/component/autoscaling/vpa"
	"github.com/gardener/gardener/pkg/component/crddeployer"
	"github.com/gardener/gardener/pkg/component/extensions/crds"
	"github.com/gardener/gardener/pkg/component/gardener/resourcemanager"
	"github.com/gardener/gardener/pkg/component/nodemanagement/machinecontrollermanager"
	"github.com/gardener/gardener/pkg/component/observability/monitoring/prometheusoperator"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// InstallCRDs installs the CRDs that gardenlet installs and an extension may use: extension
// resources, ManagedResource, machines, the Prometheus operator's (rules and scrape configs of a
// shoot's control plane) and VerticalPodAutoscaler. It returns when the API server serves them.
// They come from the Gardener module, so they match the version in go.mod. Nothing reconciles the
// machines, Prometheus and autoscaler resources.
//
// It must run before any extension starts: an extension's webhook rules need the REST mapping of
// OperatingSystemConfig.
func InstallCRDs(ctx context.Context, seed client.Client) error {
	var all []component.Deployer
	for name, read := range map[string]func() (component.DeployWaiter, error){
		"extension": func() (component.DeployWaiter, error) { return crds.NewCRD(seed, true, true) },
		"resource": func() (component.DeployWaiter, error) {
			return crddeployer.New(seed, []string{resourcemanager.CRD}, false)
		},
		"monitoring": func() (component.DeployWaiter, error) { return prometheusoperator.NewCRDs(seed) },
		"autoscaler": func() (component.DeployWaiter, error) { return vpa.NewCRD(seed, nil) },
		// There are no machines, but gardenlet lists them before it deletes stale operating system
		// configs.
		"machine": func() (component.DeployWaiter, error) { return machinecontrollermanager.NewCRD(seed) },
	} {
		definitions, err := read()
		if err != nil {
			return fmt.Errorf("read the %s CRDs of the Gardener module: %w", name, err)
		}
		all = append(all, definitions)
	}
	if err := component.OpWait(all...).Deploy(ctx); err != nil {
		return fmt.Errorf("install Gardener's CRDs: %w", err)
	}
	return nil
}

// InstallPriorityClasses creates the priority classes of gardenlet's shoot system component in the
// shoot. System pods of extensions may use them.
func InstallPriorityClasses(ctx context.Context, shoot client.Client) error {
	if err := apply(ctx, shoot, priorityClasses()...); err != nil {
		return fmt.Errorf("install the shoot's priority classes: %w", err)
	}
	return nil
}

// InstallSeedPriorityClasses creates the priority classes of gardenlet's seed system component in
// the seed. Pods of extensions may use them.
func InstallSeedPriorityClasses(ctx context.Context, seed client.Client) error {
	if err := apply(ctx, seed, seedPriorityClasses()...); err != nil {
		return fmt.Errorf("install the seed's priority classes: %w", err)
	}
	return nil
}

// priorityClasses returns the classes with the values of gardener's pkg/component/shoot/system.
func priorityClasses() []client.Object {
	return []client.Object{
		priorityClass(v1beta1constants.PriorityClassNameShootSystem900, 999999900),
		priorityClass(v1beta1constants.PriorityClassNameShootSystem800, 999999800),
		priorityClass(v1beta1constants.PriorityClassNameShootSystem700, 999999700),
		priorityClass(v1beta1constants.PriorityClassNameShootSystem600, 999999600),
	}
}

// seedPriorityClasses returns the classes with the values of gardener's pkg/component/seed/system.
func seedPriorityClasses() []client.Object {
	return []client.Object{
		priorityClass(v1beta1constants.PriorityClassNameSeedSystem900, 999998900),
		priorityClass(v1beta1constants.PriorityClassNameSeedSystem800, 999998800),
		priorityClass(v1beta1constants.PriorityClassNameSeedSystem700, 999998700),
		priorityClass(v1beta1constants.PriorityClassNameSeedSystem600, 999998600),
	}
}

func priorityClass(name string, value int32) *schedulingv1.PriorityClass {
	return &schedulingv1.PriorityClass{
		TypeMeta:    metav1.TypeMeta{APIVersion: schedulingv1.SchemeGroupVersion.String(), Kind: "PriorityClass"},
		ObjectMeta:  metav1.ObjectMeta{Name: name},
		Description: "PriorityClass for system components",
		Value:       value,
	}
}
