package gardener

import (
	"context"
	"fmt"

	"github.com/gardener/gardener/pkg/component"
	"github.com/gardener/gardener/pkg/component/autoscaling/vpa"
	"github.com/gardener/gardener/pkg/component/crddeployer"
	"github.com/gardener/gardener/pkg/component/extensions/crds"
	"github.com/gardener/gardener/pkg/component/gardener/resourcemanager"
	"github.com/gardener/gardener/pkg/component/nodemanagement/machinecontrollermanager"
	"github.com/gardener/gardener/pkg/component/observability/monitoring/prometheusoperator"
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
