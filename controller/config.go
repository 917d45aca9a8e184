package controller

import (
	"errors"
	"fmt"

	v1beta1helper "github.com/gardener/gardener/pkg/api/core/v1beta1/helper"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

// errWorkerless is the error for Shoots without workers. Admission rejects them, so this is for
// Shoots that got past it.
var errWorkerless = errors.New("the Shoot has no workers, so no node can run a cache or pull through it; " +
	"remove the extension from the Shoot, or add a worker pool")

// decodeConfig returns the providerConfig, valid and with defaults. applied, the last applied
// config, limits what may change. It is nil if unknown. Errors have field paths and the code
// ERR_CONFIGURATION_PROBLEM, so that Gardener shows them as errors of the Shoot's owner.
func decodeConfig(ex *extensionsv1alpha1.Extension, applied *v1alpha3.RegistryConfig) (*v1alpha3.RegistryConfig, error) {
	var raw []byte
	if ex.Spec.ProviderConfig != nil {
		raw = ex.Spec.ProviderConfig.Raw
	}
	config, err := v1alpha3.DecodeConfig(raw)
	if err != nil {
		return nil, configurationProblem(err)
	}
	v1alpha3.SetDefaults(config)
	if errs := v1alpha3.ValidateUpdate(config, applied); len(errs) > 0 {
		return nil, configurationProblem(errs.ToAggregate())
	}
	return config, nil
}

func configurationProblem(err error) error {
	return v1beta1helper.NewErrorWithCodes(
		fmt.Errorf("providerConfig of Extension %s: %w", v1alpha3.ExtensionType, err), gardencorev1beta1.ErrorConfigurationProblem)
}
