package status

import (
	"encoding/json"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

// Extension is one Extension of the Shoot.
type Extension struct {
	Type          string                           `json:"type"`
	Deleting      bool                             `json:"deleting,omitempty"`
	LastOperation *gardencorev1beta1.LastOperation `json:"lastOperation,omitempty"`
	LastError     *gardencorev1beta1.LastError     `json:"lastError,omitempty"`
	Conditions    []gardencorev1beta1.Condition    `json:"conditions,omitempty"`
	// ProviderStatus is unchanged. The registry-cache writes a RegistryStatus.
	ProviderStatus json.RawMessage `json:"providerStatus,omitempty"`
}

func extensionOf(extension *extensionsv1alpha1.Extension) Extension {
	return Extension{
		Type:           extension.Spec.Type,
		Deleting:       extension.DeletionTimestamp != nil,
		LastOperation:  extension.Status.LastOperation,
		LastError:      extension.Status.LastError,
		Conditions:     extension.Status.Conditions,
		ProviderStatus: ptr.Deref(extension.Status.ProviderStatus, runtime.RawExtension{}).Raw,
	}
}

// OperatingSystemConfig is one OperatingSystemConfig of the Shoot.
type OperatingSystemConfig struct {
	Name          string                           `json:"name"`
	Purpose       string                           `json:"purpose"`
	Deleting      bool                             `json:"deleting,omitempty"`
	LastOperation *gardencorev1beta1.LastOperation `json:"lastOperation,omitempty"`
	LastError     *gardencorev1beta1.LastError     `json:"lastError,omitempty"`
	// Configured reports whether it contains the extension's unit, which configures Registries.
	Configured bool              `json:"configured"`
	Registries []RegistryMapping `json:"registries,omitempty"`
	// Problem says why the unit cannot be parsed.
	Problem string `json:"problem,omitempty"`
}

// RegistryMapping is one upstream in the extension's unit.
type RegistryMapping struct {
	Upstream string `json:"upstream"`
	Endpoint string `json:"endpoint"`
}

func configOf(config *extensionsv1alpha1.OperatingSystemConfig) OperatingSystemConfig {
	status := OperatingSystemConfig{
		Name:          config.Name,
		Purpose:       string(config.Spec.Purpose),
		Deleting:      config.DeletionTimestamp != nil,
		LastOperation: config.Status.LastOperation,
		LastError:     config.Status.LastError,
	}
	for _, unit := range config.Spec.Units {
		if unit.Name != nodeconfig.UnitName {
			continue
		}
		status.Configured = true
		registries, err := nodeconfig.ParseUnit(ptr.Deref(unit.Content, ""))
		if err != nil {
			status.Problem = firstLine(err)
		}
		for _, registry := range registries {
			status.Registries = append(status.Registries, RegistryMapping{Upstream: registry.Upstream, Endpoint: registry.Endpoint})
		}
	}
	return status
}
