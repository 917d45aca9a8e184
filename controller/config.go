package controller

import (
	"fmt"
	"slices"

	v1beta1helper "github.com/gardener/gardener/pkg/api/core/v1beta1/helper"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

// decodeConfig returns the defaulted and valid providerConfig. Whatever is wrong with it comes with its field path and
// the code ERR_CONFIGURATION_PROBLEM, by which Gardener shows it as the mistake of the Shoot's owner.
func decodeConfig(ex *extensionsv1alpha1.Extension) (*v1alpha3.RegistryConfig, error) {
	var raw []byte
	if ex.Spec.ProviderConfig != nil {
		raw = ex.Spec.ProviderConfig.Raw
	}
	config, err := v1alpha3.DecodeConfig(raw)
	if err != nil {
		return nil, configurationProblem(err)
	}
	v1alpha3.SetDefaults(config)
	if errs := v1alpha3.Validate(config); len(errs) > 0 {
		return nil, configurationProblem(errs.ToAggregate())
	}
	return config, nil
}

func configurationProblem(err error) error {
	return v1beta1helper.NewErrorWithCodes(
		fmt.Errorf("providerConfig of extension %s: %w", Type, err), gardencorev1beta1.ErrorConfigurationProblem)
}

// removed returns the upstreams that run by the status and are not in the config.
func removed(status *v1alpha3.RegistryStatus, config *v1alpha3.RegistryConfig) []string {
	var upstreams []string
	for _, cache := range status.Caches {
		if !configured(config, cache.Upstream) {
			upstreams = append(upstreams, cache.Upstream)
		}
	}
	return upstreams
}

// retained returns the caches that run by the status and are in the config.
func retained(status *v1alpha3.RegistryStatus, config *v1alpha3.RegistryConfig) []v1alpha3.RegistryCacheStatus {
	return slices.DeleteFunc(slices.Clone(status.Caches), func(cache v1alpha3.RegistryCacheStatus) bool {
		return !configured(config, cache.Upstream)
	})
}

func configured(config *v1alpha3.RegistryConfig, upstream string) bool {
	return slices.ContainsFunc(config.Caches, func(cache v1alpha3.RegistryCache) bool {
		return cache.Upstream == upstream
	})
}
