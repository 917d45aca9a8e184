package monitoring

import (
	"fmt"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/gardener/gardener/pkg/component/observability/monitoring/prometheus/shoot"
	monitoringutils "github.com/gardener/gardener/pkg/component/observability/monitoring/utils"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

// What the expressions are made of. The label type of distribution's metrics, blob or manifest, arrives as
// exported_type: type is "shoot" for all that Gardener scrapes in a shoot.
const (
	job   = `job="` + name + `"`
	blobs = job + `,exported_type="blob"`
	pulls = job + `,handler=~"blob|manifest"`

	// volumes selects what kubelets say of the volumes of caches; the name of a claim is that of the volume in the
	// StatefulSet, of the StatefulSet, and a number.
	volumes = `job="kube-kubelet",type="shoot",namespace="kube-system",persistentvolumeclaim=~"cache-volume-registry-.+"`

	free = "100 * kubelet_volume_stats_available_bytes{" + volumes + "} / kubelet_volume_stats_capacity_bytes{" + volumes + "}"

	// failed are the answers of an upstream that keep the cache from getting what exists: none, wrong credentials, too
	// many requests, and errors of the server. Of 401, an upstream with tokens gives one at each start of the cache.
	failed = job + `,code=~"error|401|403|429|5.."`

	hitRatio = "registry_cache:blob_hit_ratio:rate6h"
)

// prometheusRule returns the alerts. Labels are those that Gardener's alert routing knows: visibility owner sends an
// alert to the owner of the Shoot.
func prometheusRule(namespace string, caches []v1alpha3.RegistryCache) *monitoringv1.PrometheusRule {
	rules := []monitoringv1.Rule{hitRatioRecord()}
	for _, cache := range caches {
		rules = append(rules, unavailable(cache))
	}
	rules = append(rules, full(), fullSoon(), upstreamErrors(), errors5xx(), hitRatioDropped())
	return &monitoringv1.PrometheusRule{
		ObjectMeta: monitoringutils.ConfigObjectMeta(name, namespace, shoot.Label),
		Spec:       monitoringv1.PrometheusRuleSpec{Groups: []monitoringv1.RuleGroup{{Name: name + ".rules", Rules: rules}}},
	}
}

func alert(name, severity, pending, expression, summary, description string) monitoringv1.Rule {
	return monitoringv1.Rule{
		Alert: name,
		Expr:  intstr.FromString(expression),
		For:   ptr.To(monitoringv1.Duration(pending)),
		Labels: map[string]string{
			"service": "registry-cache", "severity": severity, "type": "shoot", "visibility": "owner",
		},
		Annotations: map[string]string{"summary": summary, "description": description},
	}
}

// hitRatioRecord: 1 means that every blob came from the cache. There is no value while nothing is pulled.
func hitRatioRecord() monitoringv1.Rule {
	return monitoringv1.Rule{
		Record: hitRatio,
		Expr: intstr.FromString(sumByUpstream("rate(registry_proxy_hits_total{"+blobs+"}[6h])") + " / (" +
			sumByUpstream("rate(registry_proxy_requests_total{"+blobs+"}[6h])") + " > 0)"),
	}
}

func sumByUpstream(expression string) string {
	return "sum by (" + labelUpstream + ") (" + expression + ")"
}

// unavailable is a rule for each cache: a cache without any pod has no series that a common rule could see.
func unavailable(cache v1alpha3.RegistryCache) monitoringv1.Rule {
	host := v1alpha3.HostLabel(cache.Upstream)
	rule := alert("RegistryCacheUnavailable", "warning", "15m",
		fmt.Sprintf("absent(up{%s,%s=%q} == 1)", job, labelUpstream, host),
		"Registry cache unavailable",
		fmt.Sprintf("The registry cache for %s has not run for 15 minutes. Images are pulled from the registry itself meanwhile. "+
			"Look at the pods and volume claims of StatefulSet %s in the namespace kube-system.", cache.Upstream, v1alpha3.Name(cache.Upstream)))
	rule.Labels[labelUpstream] = host
	return rule
}

func full() monitoringv1.Rule {
	return alert("RegistryCacheVolumeFull", "warning", "1h",
		free+" < 5",
		"Volume of a registry cache full",
		`The volume {{ $labels.persistentvolumeclaim }} of a registry cache is only {{ printf "%0.2f" $value }}% free. `+
			"What does not fit is fetched from the upstream for each node; a stock distribution image breaks such pulls off instead. "+
			"Enlarge volume.size of the cache, or shorten garbageCollection.ttl.")
}

func fullSoon() monitoringv1.Rule {
	return alert("RegistryCacheVolumeFullInFourDays", "warning", "1h",
		"("+free+" < 15) and predict_linear(kubelet_volume_stats_available_bytes{"+volumes+"}[6h], 4 * 24 * 3600) <= 0",
		"Volume of a registry cache full in four days",
		"As it went for six hours, the volume {{ $labels.persistentvolumeclaim }} of a registry cache will be full within four days. "+
			`Now {{ printf "%0.2f" $value }}% of it are free. Enlarge volume.size of the cache, or shorten garbageCollection.ttl.`)
}

// upstreamErrors needs the metric of our image; with a stock distribution image it never fires.
func upstreamErrors() monitoringv1.Rule {
	const metric = "registry_proxy_upstream_requests_total"
	return alert("RegistryCacheUpstreamErrors", "warning", "15m",
		sumByUpstream("rate("+metric+"{"+failed+"}[15m])")+" / "+sumByUpstream("rate("+metric+"{"+job+"}[15m])")+" > 0.1"+
			" and "+sumByUpstream("increase("+metric+"{"+failed+"}[15m])")+" > 10",
		"Upstream of a registry cache fails",
		"{{ $value | humanizePercentage }} of the requests of the registry cache for {{ $labels.upstream_host }} to its upstream fail. "+
			"What is cached is served further on. The log of the cache has the reasons: the registry is down or limits requests, "+
			"credentials are wrong, or the proxy is.")
}

func errors5xx() monitoringv1.Rule {
	const metric = "registry_http_requests_total"
	const code = `,code=~"5.."`
	return alert("RegistryCacheErrors", "warning", "15m",
		sumByUpstream("rate("+metric+"{"+pulls+code+"}[15m])")+" / "+sumByUpstream("rate("+metric+"{"+pulls+"}[15m])")+" > 0.1"+
			" and "+sumByUpstream("increase("+metric+"{"+pulls+code+"}[15m])")+" > 10",
		"Registry cache answers with errors",
		"The registry cache for {{ $labels.upstream_host }} answers {{ $value | humanizePercentage }} of the requests of nodes with an error. "+
			"Nodes pull from the registry itself then. The log of the cache has the reasons, such as a volume that cannot be used.")
}

// hitRatioDropped compares with the two days before. New versions of all images would look the same for a while, so it
// must last.
func hitRatioDropped() monitoringv1.Rule {
	return alert("RegistryCacheHitRatioDropped", "info", "3h",
		hitRatio+" < 0.5 * avg_over_time("+hitRatio+"[2d] offset 6h)"+
			" and "+sumByUpstream("increase(registry_proxy_requests_total{"+blobs+"}[6h])")+" > 100",
		"Registry cache serves less from its volume",
		"Only {{ $value | humanizePercentage }} of the blobs that nodes pulled through the registry cache for {{ $labels.upstream_host }} "+
			"in six hours were cached, less than half of what it was in the two days before. "+
			"The volume may be new, or content may expire before it is used again (garbageCollection.ttl).")
}
