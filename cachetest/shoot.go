package cachetest

import (
	"encoding/json"
	"fmt"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/kind/gardenlet"
)

// Shoot returns the testbed's Shoot with a cache for each upstream host, see Cache. Without hosts
// the Shoot does not have the extension.
func Shoot(hosts ...string) (*gardencorev1beta1.Shoot, error) {
	var config v1alpha3.RegistryConfig
	for _, host := range hosts {
		config.Caches = append(config.Caches, Cache(host))
	}
	return ShootWith(config)
}

// httpsCache is the upstream whose cache serves HTTPS, which is the default. The others serve plain
// HTTP, so that the testbed has caches of both kinds.
const httpsCache = "beta.upstream.test"

// Cache returns the config of a cache that pulls from an upstream of the testbed over plain HTTP.
func Cache(host string) v1alpha3.RegistryCache {
	remoteURL := "http://" + host
	cache := v1alpha3.RegistryCache{Upstream: host, RemoteURL: &remoteURL}
	if host != httpsCache {
		cache.HTTP = &v1alpha3.HTTP{}
	}
	return cache
}

// ShootWith returns the testbed's Shoot with the config, which is neither defaulted nor validated.
// Missing apiVersion and kind are added. Without caches the Shoot does not have the extension.
func ShootWith(config v1alpha3.RegistryConfig) (*gardencorev1beta1.Shoot, error) {
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
	return gardenlet.Shoot(gardenlet.Extension(v1alpha3.ExtensionType, encoded)), nil
}
