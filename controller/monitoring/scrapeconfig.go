package monitoring

import (
	"strings"

	monitoringv1alpha1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1alpha1"

	"github.com/gardener/gardener/pkg/component/observability/monitoring/prometheus/shoot"
	monitoringutils "github.com/gardener/gardener/pkg/component/observability/monitoring/utils"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/controller/cache"
)

// scraped are the metrics that alerts and dashboard use, and what else tells how a cache does.
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

// scrapeConfig makes the shoot's Prometheus scrape every pod of every cache, by the proxy of the shoot's API server, as
// Gardener does for components in a shoot. Pods are found by Endpoints: only those carry the labels of the Service, of
// which upstream-host says whose cache it is (gardener-extension-registry-cache#459).
func scrapeConfig(namespace string, caches []v1alpha3.RegistryCache) *monitoringv1alpha1.ScrapeConfig {
	services := make([]string, 0, len(caches))
	for i := range caches {
		services = append(services, v1alpha3.ServiceName(&caches[i]))
	}
	return &monitoringv1alpha1.ScrapeConfig{
		ObjectMeta: monitoringutils.ConfigObjectMeta(name, namespace, shoot.Label),
		Spec: shoot.ClusterComponentScrapeConfigSpec(name, shoot.KubernetesServiceDiscoveryConfig{
			Role:             monitoringv1alpha1.KubernetesRoleEndpoint,
			ServiceName:      "(" + strings.Join(services, "|") + ")", // a regular expression; names are DNS labels
			EndpointPortName: cache.MetricsPortName,
		}, scraped...),
	}
}
