// Package monitoring builds the objects with which a shoot's control plane monitors the caches: a
// ScrapeConfig, alerts and a dashboard.
//
// All functions are pure. The caller decides which Shoots get the objects, and how. The objects
// find pods by the names of their Services, and volumes by the names of their claims.
//
// Prometheus's promtool tests the rules: testdata/*.test.yaml define which series raise which
// alert.
package monitoring

import (
	"slices"
	"strings"

	"github.com/gardener/gardener/pkg/component/observability/monitoring/prometheus/shoot"
	monitoringutils "github.com/gardener/gardener/pkg/component/observability/monitoring/utils"
	"github.com/gardener/gardener/pkg/utils"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	monitoringv1alpha1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/controller/cache"
)

// The names are the same as in gardener-extension-registry-cache, so that its objects are adopted,
// and queries, silences and links keep working.
const (
	// name is part of the names of all objects, and the value of their label component.
	name = "registry-cache"
	// jobName is the value of the label job of all series.
	jobName = "registry-cache-metrics"
	// labelUpstream is the Prometheus label for the Service label upstream-host.
	labelUpstream = "upstream_host"
)

// Objects returns the monitoring objects for the caches of a valid config and their identities, in
// the namespace of a shoot's control plane: a ScrapeConfig and a PrometheusRule for the shoot's
// Prometheus, and a ConfigMap with a dashboard. Gardener's kubernetes.SeedScheme contains their
// kinds.
func Objects(namespace string, config *v1alpha3.RegistryConfig, identities v1alpha3.Identities) []client.Object {
	objects := []client.Object{scrapeConfig(namespace, config.Caches, identities), prometheusRule(namespace, identities), dashboardConfigMap(namespace)}
	for _, object := range objects {
		object.SetLabels(utils.MergeStringMaps(object.GetLabels(), map[string]string{"component": name}))
	}
	return objects
}

// References returns references to the objects, also those of gardener-extension-registry-cache.
func References(namespace string) []client.Object {
	reference := func(apiVersion, kind, name string) client.Object {
		return &metav1.PartialObjectMetadata{
			TypeMeta:   metav1.TypeMeta{APIVersion: apiVersion, Kind: kind},
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		}
	}
	return []client.Object{
		reference("monitoring.coreos.com/v1alpha1", "ScrapeConfig", "shoot-"+name),
		reference("monitoring.coreos.com/v1", "PrometheusRule", "shoot-"+name),
		reference("v1", "ConfigMap", name+"-dashboards"),
	}
}

// scraped lists the metrics for alerts, for the dashboard and for people who debug a cache.
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
	"registry_proxy_replica_answers_total",
	"registry_proxy_requests_total",
	"registry_proxy_resumed_downloads_total",
	"registry_proxy_stale_answers_total",
	"registry_proxy_unstored_requests_total",
	"registry_proxy_upstream_breaker_open",
	"registry_proxy_upstream_header_seconds_count",
	"registry_proxy_upstream_header_seconds_sum",
	"registry_proxy_upstream_requests_total",
	"registry_storage_blobs",
	"registry_storage_bytes",
	"registry_storage_damaged_blobs_total",
	"registry_storage_evicted_bytes_total",
	"registry_storage_free_bytes",
	"registry_storage_free_inodes",
}

// scrapeConfig returns the object that lets Prometheus scrape each pod of each cache through the
// API server proxy, as Gardener does for its components in a shoot. Prometheus discovers the pods
// by Endpoints: only Endpoints carry the Service label upstream-host, which identifies the cache
// (gardener-extension-registry-cache#459).
func scrapeConfig(namespace string, caches []v1alpha3.RegistryCache, identities v1alpha3.Identities) *monitoringv1alpha1.ScrapeConfig {
	services := make([]string, 0, len(caches))
	for i := range caches {
		services = append(services, identities[i].ServiceName(&caches[i]))
	}
	spec := shoot.ClusterComponentScrapeConfigSpec(jobName, shoot.KubernetesServiceDiscoveryConfig{
		Role:             monitoringv1alpha1.KubernetesRoleEndpoint,
		ServiceName:      "(" + strings.Join(services, "|") + ")", // a regular expression; the names are DNS labels
		EndpointPortName: cache.DebugPortName,
	}, scraped...)
	// Gardener's label type="shoot" would rename distribution's label type (blob or manifest).
	spec.RelabelConfigs = slices.DeleteFunc(spec.RelabelConfigs, func(c monitoringv1.RelabelConfig) bool { return c.TargetLabel == "type" })
	return &monitoringv1alpha1.ScrapeConfig{ObjectMeta: monitoringutils.ConfigObjectMeta(name, namespace, shoot.Label), Spec: spec}
}
