package monitoring

import (
	"errors"
	"fmt"
	"strings"

	"github.com/gardener/gardener/pkg/component/observability/monitoring/prometheus/shoot"
	monitoringutils "github.com/gardener/gardener/pkg/component/observability/monitoring/utils"
	monitoringv1alpha1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/controller/cache"
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

// scraped are the metrics that alerts, the dashboard and people who debug a cache need.
var scraped = []string{
	"process_resident_memory_bytes",
	"registry_http_request_duration_seconds_count",
	"registry_http_request_duration_seconds_sum",
	"registry_http_requests_total",
	"registry_proxy_coalesced_requests_total",
	"registry_proxy_hits_total",
	"registry_proxy_misses_total",
	"registry_proxy_pulled_bytes_total",
	"registry_proxy_pushed_bytes_total",
	"registry_proxy_requests_total",
	"registry_proxy_unstored_requests_total",
	"registry_proxy_upstream_requests_total",
	"registry_storage_damaged_blobs_total",
}

// scrapeConfig makes the shoot's Prometheus scrape every pod of every cache through the API server
// proxy, like Gardener does for its components in a shoot. It discovers pods by Endpoints: only
// those carry the Service label upstream-host, which identifies the cache
// (gardener-extension-registry-cache#459).
func scrapeConfig(namespace string, caches []v1alpha3.RegistryCache) *monitoringv1alpha1.ScrapeConfig {
	services := make([]string, 0, len(caches))
	for i := range caches {
		services = append(services, v1alpha3.ServiceName(&caches[i]))
	}
	return &monitoringv1alpha1.ScrapeConfig{
		ObjectMeta: monitoringutils.ConfigObjectMeta(name, namespace, shoot.Label),
		Spec: shoot.ClusterComponentScrapeConfigSpec(name, shoot.KubernetesServiceDiscoveryConfig{
			Role:             monitoringv1alpha1.KubernetesRoleEndpoint,
			ServiceName:      "(" + strings.Join(services, "|") + ")", // a regular expression; the names are DNS labels
			EndpointPortName: cache.MetricsPortName,
		}, scraped...),
	}
}
