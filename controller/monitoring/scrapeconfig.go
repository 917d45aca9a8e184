package monitoring

import (
	"strings"

	monitoringv1alpha1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1alpha1"

	"github.com/gardener/gardener/pkg/component/observability/monitoring/prometheus/shoot"
	monitoringutils "github.com/gardener/gardener/pkg/component/observability/monitoring/utils"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/controller/cache"
)

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
