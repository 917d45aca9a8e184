package controller

import (
	"errors"
	"fmt"

	v1beta1helper "github.com/gardener/gardener/pkg/api/core/v1beta1/helper"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

// errWorkerless says why a Shoot cannot have the extension. Admission refuses it; this is for Shoots that got past it.
var errWorkerless = errors.New("the Shoot has no workers: no node would pull through a cache, and none could run one; " +
	"remove the extension from the Shoot, or add a worker")

// decodeConfig returns the defaulted and valid providerConfig. What was last applied, nil if unknown, limits what may
// change. Whatever is wrong comes with its field path and the code ERR_CONFIGURATION_PROBLEM, by which Gardener shows it
// as the mistake of the Shoot's owner.
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
		fmt.Errorf("providerConfig of extension %s: %w", v1alpha3.ExtensionType, err), gardencorev1beta1.ErrorConfigurationProblem)
}
