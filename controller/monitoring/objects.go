package monitoring

import (
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

const (
	// name is the name of the scrape job and a prefix of the names of all objects.
	name = "registry-cache"
	// labelUpstream is the Prometheus label for the Service label upstream-host.
	labelUpstream = "upstream_host"
)

// Objects returns the monitoring objects for the caches of a valid config, in the namespace of a
// shoot's control plane: a ScrapeConfig and a PrometheusRule for the shoot's Prometheus, and a
// ConfigMap with a dashboard. Gardener's kubernetes.SeedScheme knows their kinds.
func Objects(namespace string, config *v1alpha3.RegistryConfig) ([]client.Object, error) {
	if config == nil || len(config.Caches) == 0 {
		return nil, errors.New("no caches to monitor")
	}
	dashboard, err := dashboardConfigMap(namespace)
	if err != nil {
		return nil, fmt.Errorf("rendering the dashboard: %w", err)
	}
	return []client.Object{scrapeConfig(namespace, config.Caches), prometheusRule(namespace, config.Caches), dashboard}, nil
}
