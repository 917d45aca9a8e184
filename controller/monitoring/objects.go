package monitoring

import (
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

const (
	// name is the name of the scrape job, and part of the names of all objects.
	name = "registry-cache"
	// labelUpstream is what Prometheus makes of the label upstream-host of a cache's Service.
	labelUpstream = "upstream_host"
)

// Objects returns the objects that watch the caches of a valid config, for the namespace of a shoot's control plane: a
// ScrapeConfig and a PrometheusRule for the shoot's Prometheus, and the ConfigMap of a dashboard. The kinds are those of
// the seed's scheme (kubernetes.SeedScheme of gardener).
func Objects(namespace string, config *v1alpha3.RegistryConfig) ([]client.Object, error) {
	if config == nil || len(config.Caches) == 0 {
		return nil, errors.New("no caches to watch")
	}
	dashboard, err := dashboardConfigMap(namespace)
	if err != nil {
		return nil, fmt.Errorf("rendering the dashboard: %w", err)
	}
	return []client.Object{scrapeConfig(namespace, config.Caches), prometheusRule(namespace, config.Caches), dashboard}, nil
}
