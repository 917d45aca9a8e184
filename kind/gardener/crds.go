package gardener

import (
	"context"
	"fmt"

	"github.com/gardener/gardener/pkg/component"
	"github.com/gardener/gardener/pkg/component/crddeployer"
	"github.com/gardener/gardener/pkg/component/extensions/crds"
	"github.com/gardener/gardener/pkg/component/gardener/resourcemanager"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// InstallCRDs installs the definitions of the extension resources and of ManagedResource into the seed and returns when
// the API server serves them. They come from the Gardener module, so they always fit the version in go.mod.
//
// It has to run before any extension starts: an extension's webhook rules need the REST mapping of OperatingSystemConfig.
func InstallCRDs(ctx context.Context, seed client.Client) error {
	extensions, err := crds.NewCRD(seed, true, true)
	if err != nil {
		return fmt.Errorf("read the extension CRDs of the Gardener module: %w", err)
	}
	resources, err := crddeployer.New(seed, []string{resourcemanager.CRD}, false)
	if err != nil {
		return fmt.Errorf("read the ManagedResource CRD of the Gardener module: %w", err)
	}
	if err := component.OpWait(extensions, resources).Deploy(ctx); err != nil {
		return fmt.Errorf("install Gardener's CRDs: %w", err)
	}
	return nil
}
