package operate

import (
	"encoding/json"
	"fmt"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/gardenlet"
)

// ShootWithCaches returns the testbed's Shoot with a cache for each upstream host, see CacheOf.
// Without hosts the Shoot does not have the extension.
func ShootWithCaches(hosts ...string) (*gardencorev1beta1.Shoot, error) {
	var config v1alpha3.RegistryConfig
	for _, host := range hosts {
		config.Caches = append(config.Caches, CacheOf(host))
	}
	return ShootWithConfig(config)
}

// CacheOf returns the config of a cache that pulls from an upstream of the testbed with plain HTTP.
func CacheOf(host string) v1alpha3.RegistryCache {
	remoteURL := "http://" + host
	return v1alpha3.RegistryCache{Upstream: host, RemoteURL: &remoteURL}
}

// ShootWithConfig returns the testbed's Shoot with the config, which is neither defaulted nor
// validated. A missing apiVersion and kind are added. Without caches the Shoot does not have the
// extension.
func ShootWithConfig(config v1alpha3.RegistryConfig) (*gardencorev1beta1.Shoot, error) {
	if len(config.Caches) == 0 {
		return gardenlet.Shoot(), nil
	}
	if config.TypeMeta == (metav1.TypeMeta{}) {
		config.TypeMeta = metav1.TypeMeta{APIVersion: v1alpha3.SchemeGroupVersion.String(), Kind: "RegistryConfig"}
	}
	encoded, err := json.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("encode the providerConfig: %w", err)
	}
	return gardenlet.Shoot(gardenlet.Extension(kind.ExtensionName, encoded)), nil
}
