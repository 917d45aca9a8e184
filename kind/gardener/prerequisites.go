package gardener

import (
	"context"
	"errors"
	"fmt"

	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"github.com/gardener/gardener/pkg/component"
	"github.com/gardener/gardener/pkg/component/autoscaling/vpa"
	"github.com/gardener/gardener/pkg/component/crddeployer"
	"github.com/gardener/gardener/pkg/component/extensions/crds"
	"github.com/gardener/gardener/pkg/component/gardener/resourcemanager"
	"github.com/gardener/gardener/pkg/component/nodemanagement/machinecontrollermanager"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// InstallCRDs installs the CRDs that gardenlet installs and an extension may use: extension
// resources, ManagedResource, machines, PrometheusRule, ScrapeConfig and VerticalPodAutoscaler. It
// returns when the API server serves them. The CRDs come from the Gardener module, so they match
// the version in go.mod. Nothing reconciles the machines, monitoring and autoscaler resources.
//
// Call InstallCRDs before any extension starts: an extension's webhook rules need the REST mapping
// of OperatingSystemConfig.
func InstallCRDs(ctx context.Context, seed client.Client) error {
	extensions, extensionsErr := crds.NewCRD(seed, true, true)
	resources, resourcesErr := crddeployer.New(seed, []string{resourcemanager.CRD}, false)
	monitoring, monitoringErr := newMonitoringCRDs(seed)
	autoscaler, autoscalerErr := vpa.NewCRD(seed, nil)
	// gardenlet lists machines before it deletes stale operating system configs. Without the CRD, the
	// list would fail.
	machines, machinesErr := machinecontrollermanager.NewCRD(seed)
	if err := errors.Join(extensionsErr, resourcesErr, monitoringErr, autoscalerErr, machinesErr); err != nil {
		return fmt.Errorf("read the CRDs of the Gardener module: %w", err)
	}
	if err := component.OpWait(extensions, resources, monitoring, autoscaler, machines).Deploy(ctx); err != nil {
		return fmt.Errorf("install Gardener's CRDs: %w", err)
	}
	return nil
}

// InstallShootCRDs installs the CRDs of the vertical pod autoscaler in the shoot, which a Shoot in
// a garden enables by default. Nothing reconciles the resources.
func InstallShootCRDs(ctx context.Context, shoot client.Client) error {
	autoscaler, err := vpa.NewCRD(shoot, nil)
	if err != nil {
		return fmt.Errorf("read the CRDs of the Gardener module: %w", err)
	}
	if err := component.OpWait(autoscaler).Deploy(ctx); err != nil {
		return fmt.Errorf("install the CRDs in the shoot: %w", err)
	}
	return nil
}

// InstallPriorityClasses creates the priority classes of gardener's pkg/component/shoot/system in
// the shoot. System pods of extensions may use them.
func InstallPriorityClasses(ctx context.Context, shoot client.Client) error {
	return installPriorityClasses(ctx, shoot, map[string]int32{
		v1beta1constants.PriorityClassNameShootSystem900: 999999900,
		v1beta1constants.PriorityClassNameShootSystem800: 999999800,
		v1beta1constants.PriorityClassNameShootSystem700: 999999700,
		v1beta1constants.PriorityClassNameShootSystem600: 999999600,
	})
}

// InstallSeedPriorityClasses creates the priority classes of gardener's pkg/component/seed/system
// in the seed. Pods of extensions may use them.
func InstallSeedPriorityClasses(ctx context.Context, seed client.Client) error {
	return installPriorityClasses(ctx, seed, map[string]int32{
		v1beta1constants.PriorityClassNameSeedSystem900: 999998900,
		v1beta1constants.PriorityClassNameSeedSystem800: 999998800,
		v1beta1constants.PriorityClassNameSeedSystem700: 999998700,
		v1beta1constants.PriorityClassNameSeedSystem600: 999998600,
	})
}

func installPriorityClasses(ctx context.Context, cluster client.Client, values map[string]int32) error {
	for name, value := range values {
		class := &schedulingv1.PriorityClass{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Description: "PriorityClass for system components", Value: value,
		}
		if err := apply(ctx, cluster, class); err != nil {
			return fmt.Errorf("install the priority classes: %w", err)
		}
	}
	return nil
}
