package cache

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	kubernetesutils "github.com/gardener/gardener/pkg/utils/kubernetes"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

const (
	configDir  = "/etc/distribution"
	configFile = "config.yml"

	// drainTimeout lets running pulls end before the process does. It stays below the 30 seconds that Kubernetes grants
	// a pod by default, so that distribution still writes its scheduler state
	// (gardener-extension-registry-cache#162).
	drainTimeout = 25 * time.Second

	// concurrentTagLookups is the value that the filesystem driver copes with on a small volume.
	concurrentTagLookups = 5
)

// registryConfig is the part of distribution's configuration file (https://distribution.github.io/distribution/about/configuration/)
// that a cache sets. It is a type of its own because distribution's one cannot leave out what is not set.
type registryConfig struct {
	Version string        `json:"version"`
	Log     logConfig     `json:"log"`
	Storage storageConfig `json:"storage"`
	HTTP    httpConfig    `json:"http"`
	Health  healthConfig  `json:"health"`
	Proxy   proxyConfig   `json:"proxy"`
}

type logConfig struct {
	Level  string            `json:"level"`
	Fields map[string]string `json:"fields"`
}

// storageConfig has no blob descriptor cache: distribution answers from it for blobs that its garbage collection has
// already deleted, with status 200 and an empty body (distribution#2367, #4191).
type storageConfig struct {
	Filesystem filesystemConfig `json:"filesystem"`
	Delete     enabled          `json:"delete"`
	Tag        tagConfig        `json:"tag"`
}

type filesystemConfig struct {
	RootDirectory string `json:"rootdirectory"`
}

type enabled struct {
	Enabled bool `json:"enabled"`
}

type tagConfig struct {
	ConcurrencyLimit int `json:"concurrencylimit"`
}

type httpConfig struct {
	Addr         string              `json:"addr"`
	DrainTimeout string              `json:"draintimeout"`
	Debug        debugConfig         `json:"debug"`
	Headers      map[string][]string `json:"headers"`
}

type debugConfig struct {
	Addr       string           `json:"addr"`
	Prometheus prometheusConfig `json:"prometheus"`
}

type prometheusConfig struct {
	Enabled bool   `json:"enabled"`
	Path    string `json:"path"`
}

type healthConfig struct {
	StorageDriver storageDriverConfig `json:"storagedriver"`
}

type storageDriverConfig struct {
	Enabled   bool   `json:"enabled"`
	Interval  string `json:"interval"`
	Threshold int    `json:"threshold"`
}

type proxyConfig struct {
	RemoteURL string `json:"remoteurl"`
	TTL       string `json:"ttl"`
}

func newRegistryConfig(cache v1alpha3.RegistryCache) registryConfig {
	return registryConfig{
		Version: "0.1",
		Log:     logConfig{Level: "info", Fields: map[string]string{"service": "registry", "upstream": cache.Upstream}},
		Storage: storageConfig{
			Filesystem: filesystemConfig{RootDirectory: volumeMountPath},
			Delete:     enabled{Enabled: true}, // without it the TTL frees no byte (distribution#4957)
			Tag:        tagConfig{ConcurrencyLimit: concurrentTagLookups},
		},
		HTTP: httpConfig{
			Addr:         fmt.Sprintf(":%d", Port),
			DrainTimeout: drainTimeout.String(),
			Debug:        debugConfig{Addr: fmt.Sprintf(":%d", DebugPort), Prometheus: prometheusConfig{Enabled: true, Path: "/metrics"}},
			Headers:      map[string][]string{"X-Content-Type-Options": {"nosniff"}},
		},
		Health: healthConfig{StorageDriver: storageDriverConfig{Enabled: true, Interval: "10s", Threshold: 3}},
		Proxy:  proxyConfig{RemoteURL: *cache.RemoteURL, TTL: cache.GarbageCollection.TTL.Duration.String()},
	}
}

// configSecret returns the immutable Secret with distribution's configuration file. Its name ends in a hash of the
// content, so that a changed configuration changes the pod template and rolls the pod.
func configSecret(cache v1alpha3.RegistryCache) (*corev1.Secret, error) {
	content, err := yaml.Marshal(newRegistryConfig(cache))
	if err != nil {
		return nil, fmt.Errorf("rendering the registry configuration for upstream %s: %w", cache.Upstream, err)
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Name:      v1alpha3.Name(cache.Upstream) + "-config",
			Namespace: metav1.NamespaceSystem,
			Labels:    labels(cache.Upstream),
		},
		Type: corev1.SecretTypeOpaque,
		Data: map[string][]byte{configFile: content},
	}
	if err := kubernetesutils.MakeUnique(secret); err != nil {
		return nil, fmt.Errorf("naming the registry configuration for upstream %s: %w", cache.Upstream, err)
	}
	return secret, nil
}
