package monitoring

import (
	"fmt"

	"github.com/gardener/gardener/pkg/component/observability/monitoring/prometheus/shoot"
	monitoringutils "github.com/gardener/gardener/pkg/component/observability/monitoring/utils"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

// Parts of the expressions.
const (
	job   = `job="` + jobName + `"`
	blobs = job + `,type="blob"`
	pulls = job + `,handler=~"blob|manifest"`

	// volumes selects kubelet's metrics for the volumes of caches. A claim has the name
	// <volume>-<StatefulSet>-<ordinal>.
	volumes = `job="kube-kubelet",type="shoot",namespace="kube-system",persistentvolumeclaim=~"cache-volume-registry-.+"`

	freeInodes = "100 * kubelet_volume_stats_inodes_free{" + volumes + "} / kubelet_volume_stats_inodes{" + volumes + "}"

	free = "100 * kubelet_volume_stats_available_bytes{" + volumes + "} / kubelet_volume_stats_capacity_bytes{" + volumes + "}"

	// failures selects requests to the upstream that fail even for existing content: no response,
	// missing permission, rate limit, and server errors. An upstream with token authentication answers
	// 401 once whenever a cache starts.
	failures = job + `,code=~"error|401|403|429|5.."`

	hitRatio = "registry_cache:blob_hit_ratio:rate6h"
)

// prometheusRule returns the alerts. Their labels are those of Gardener's alert routing: visibility
// "owner" sends an alert to the owner of the Shoot.
func prometheusRule(namespace string, identities v1alpha3.Identities) *monitoringv1.PrometheusRule {
	rules := []monitoringv1.Rule{
		// The hit ratio of blobs, from 0 to 1. While nothing is pulled, there is no value.
		recorded(hitRatio, sumByUpstream("rate(registry_proxy_hits_total{"+blobs+"}[6h])")+
			" / ("+sumByUpstream("rate(registry_proxy_requests_total{"+blobs+"}[6h])")+" > 0)"),
		federated("registry_proxy_pushed_bytes_total"),
		federated("registry_proxy_pulled_bytes_total"),
	}
	for _, id := range identities {
		rules = append(rules, unavailable(id))
	}
	rules = append(rules, alertsOfAllCaches...)
	return &monitoringv1.PrometheusRule{
		ObjectMeta: monitoringutils.ConfigObjectMeta(name, namespace, shoot.Label),
		Spec:       monitoringv1.PrometheusRuleSpec{Groups: []monitoringv1.RuleGroup{{Name: name + ".rules", Rules: rules}}},
	}
}

func recorded(name, expression string) monitoringv1.Rule {
	return monitoringv1.Rule{Record: name, Expr: intstr.FromString(expression)}
}

// federated returns a rule for bytes per second of each cache. Gardener's aggregate Prometheus and
// that of the garden collect every series whose name has the form "shoot:<metric>:<operation>".
func federated(metric string) monitoringv1.Rule {
	return recorded("shoot:"+metric+":sum", sumByUpstream("rate("+metric+"{"+job+"}[5m])"))
}

func alert(name, severity, pending, expression, summary, description string) monitoringv1.Rule {
	return monitoringv1.Rule{
		Alert:       name,
		Expr:        intstr.FromString(expression),
		For:         new(monitoringv1.Duration(pending)),
		Labels:      map[string]string{"service": "registry-cache-extension", "severity": severity, "type": "shoot", "visibility": "owner"},
		Annotations: map[string]string{"summary": summary, "description": description},
	}
}

func sumByUpstream(expression string) string {
	return "sum by (" + labelUpstream + ") (" + expression + ")"
}

// unavailable returns the rule for one cache. One rule for all caches is impossible, because a
// cache without pods has no series.
func unavailable(id v1alpha3.Identity) monitoringv1.Rule {
	rule := alert("RegistryCacheUnavailable", "warning", "15m",
		fmt.Sprintf("absent(up{%s,%s=%q} == 1)", job, labelUpstream, id.HostLabel),
		"Registry cache unavailable",
		fmt.Sprintf("The registry cache for %s has not run for 15 minutes. Until it does, nodes pull images from the upstream. "+
			"Check the pods and volume claims of StatefulSet %s in the namespace kube-system.", id.Upstream, id.Name))
	rule.Labels[labelUpstream] = id.HostLabel
	return rule
}

var alertsOfAllCaches = []monitoringv1.Rule{
	alert("RegistryCachePersistentVolumeUsageCritical", "warning", "1h",
		free+" < 5",
		"Volume of a registry cache full",
		`Only {{ printf "%0.2f" $value }}% of the volume {{ $labels.persistentvolumeclaim }} of a registry cache are free. `+
			"The cache evicts images to keep more free: something else uses the volume, or one image needs more. "+
			"Content that does not fit is not stored; with a stock distribution image, such pulls fail. Increase volume.size of the cache."),
	alert("RegistryCacheVolumeOutOfInodes", "warning", "1h",
		freeInodes+" < 5",
		"Volume of a registry cache has no room for files",
		`Only {{ printf "%0.2f" $value }}% of the inodes of the volume {{ $labels.persistentvolumeclaim }} of a registry cache are free. `+
			"Content that does not fit is not stored. Increase volume.size of the cache, or use a file system with more inodes."),
	// With a stock distribution image, which lacks the metric, this alert and the next never fire.
	alert("RegistryCacheVolumeTooSmall", "info", "6h",
		sumByUpstream("increase(registry_storage_evicted_bytes_total{"+job+`,reason="space"}[1d])`)+" > "+
			sumByUpstream("avg_over_time(registry_storage_bytes{"+job+"}[1d])")+" > 0",
		"Volume of a registry cache too small",
		"In one day the registry cache for {{ $labels.upstream_host }} has evicted {{ $value | humanize1024 }}B for lack of space, "+
			"more than its volume stores. Images are fetched again although their TTL has not ended. Increase volume.size of the cache."),
	alert("RegistryCacheUpstreamErrors", "warning", "15m",
		tooMany("registry_proxy_upstream_requests_total", failures, job),
		"Upstream of a registry cache fails",
		"{{ $value | humanizePercentage }} of the requests of the registry cache for {{ $labels.upstream_host }} to its upstream fail. "+
			"Cached content is still served. See the log of the cache for the reasons: the registry may be down or limit requests, "+
			"or the credentials or the proxy may be wrong."),
	alert("RegistryCacheErrors", "warning", "15m",
		tooMany("registry_http_requests_total", pulls+`,code=~"5.."`, pulls),
		"Registry cache answers with errors",
		"The registry cache for {{ $labels.upstream_host }} answers {{ $value | humanizePercentage }} of the requests of nodes "+
			"with an error. Nodes pull from the upstream instead. See the log of the cache for the reasons, such as an unusable volume."),
	// If all images are updated, the ratio is low for a while, so the alert waits for three hours.
	alert("RegistryCacheHitRatioDropped", "info", "3h",
		hitRatio+" < 0.5 * avg_over_time("+hitRatio+"[2d] offset 6h)"+
			" and "+sumByUpstream("increase(registry_proxy_requests_total{"+blobs+"}[6h])")+" > 100",
		"Registry cache serves less from its volume",
		"In the last six hours, only {{ $value | humanizePercentage }} of the blobs that nodes pulled through the registry cache for "+
			"{{ $labels.upstream_host }} were cached, less than half of the ratio of the two days before. "+
			"The volume may be new, or content may expire before it is used again (garbageCollection.ttl)."),
}

// tooMany returns a condition: of 15 minutes' requests, more than 10% and more than 10 are bad.
func tooMany(metric, bad, all string) string {
	return sumByUpstream("rate("+metric+"{"+bad+"}[15m])") + " / " + sumByUpstream("rate("+metric+"{"+all+"}[15m])") + " > 0.1" +
		" and " + sumByUpstream("increase("+metric+"{"+bad+"}[15m])") + " > 10"
}
