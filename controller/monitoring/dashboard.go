package monitoring

import (
	"encoding/json"
	"strings"

	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// object is a JSON object of Plutono's dashboard format, which is that of Grafana 7.5.
type object map[string]any

// query is one PromQL expression of a panel and the legend of its lines.
type query struct{ expression, legend string }

// timeseries returns a panel with a line chart.
func timeseries(title, description, unit string, queries ...query) object {
	defaults := object{"unit": unit, "min": 0}
	if unit == unitRatio {
		defaults["max"] = 1
	}
	return panel("timeseries", title, description, defaults, queries)
}

// totals returns a panel with one number for each upstream.
func totals(title, description string, q query) object {
	return panel("stat", title, description, object{"unit": "bytes"}, []query{q})
}

func panel(kind, title, description string, defaults object, queries []query) object {
	targets := make([]object, len(queries))
	for i, q := range queries {
		targets[i] = object{"refId": string(rune('A' + i)), "expr": q.expression, "legendFormat": q.legend}
		if kind == "stat" {
			targets[i]["instant"] = true
		}
	}
	return object{
		"type": kind, "title": title, "description": description, "datasource": datasource,
		"targets": targets, "fieldConfig": object{"defaults": defaults},
	}
}

// arrange places the panels in two columns and numbers them.
func arrange(panels ...object) []object {
	const height, width = 8, 12
	for i, panel := range panels {
		panel["id"], panel["gridPos"] = i+1, object{"h": height, "w": width, "x": i % 2 * width, "y": i / 2 * height}
	}
	return panels
}

func dashboardConfigMap(namespace string) *corev1.ConfigMap {
	content, err := json.MarshalIndent(cachesDashboard(), "", "  ")
	utilruntime.Must(err) // it contains only strings, numbers and booleans
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Name:      name + "-dashboards",
			Namespace: namespace,
			Labels:    map[string]string{v1beta1constants.LabelPrefixMonitoringDashboard + "shoot": "true"}, // for the shoot's Plutono
		},
		Data: map[string]string{name + ".dashboard.json": string(content) + "\n"},
	}
}

const (
	datasource = "prometheus"

	unitRatio  = "percentunit"
	unitBytes  = "Bps"
	unitRate   = "reqps"
	unitNumber = "short"

	// chosen selects the caches that the viewer has selected in the dashboard.
	chosen = job + `,upstream_host=~"$upstream"`
	each   = "{{upstream_host}}"
)

// cachesDashboard returns the dashboard of all caches of a shoot.
func cachesDashboard() object {
	const upstreams = "label_values(up{" + job + "}, upstream_host)"
	const onTimeRange, sharedCrosshair = 2, 1
	variable := object{
		"name": "upstream", "label": "Upstream", "type": "query", "datasource": datasource, "query": upstreams, "definition": upstreams,
		"refresh": onTimeRange, "includeAll": true, "multi": true, "allValue": ".*", "current": object{"text": "All", "value": "$__all"},
	}
	panels := arrange(
		timeseries("Hit ratio of blobs",
			"Share of the blobs that were served from the volume of the cache. At 100%, nothing is fetched from the upstream.", unitRatio,
			query{perUpstream("registry_proxy_hits_total", `,type="blob"`) + " / " +
				perUpstream("registry_proxy_requests_total", `,type="blob"`), each}),
		timeseries("Instances", "Instances of each cache that answer. At 0, nodes pull from the upstream.", unitNumber,
			query{"sum by (upstream_host) (up{" + chosen + "})", each}),
		timeseries("Traffic", "Out: bytes sent to nodes. In: bytes fetched from the upstream. The difference is the traffic that the cache saves.", unitBytes,
			query{perUpstream("registry_proxy_pushed_bytes_total", ""), each + " out"},
			query{perUpstream("registry_proxy_pulled_bytes_total", ""), each + " in"}),
		totals("Total pushed", "Bytes sent to nodes in the time range.", query{total("pushed"), each}),
		totals("Total pulled", "Bytes fetched from the upstream in the time range.", query{total("pulled"), each}),
		totals("Total saved", "Bytes that were sent to nodes and not fetched from the upstream, in the time range.",
			query{total("pushed") + " - " + total("pulled"), each}),
		timeseries("Requests served", "Hits and misses, blobs and manifests.", unitRate,
			query{perUpstream("registry_proxy_hits_total", "", "type"), each + " {{type}} hit"},
			query{perUpstream("registry_proxy_misses_total", "", "type"), each + " {{type}} miss"}),
		timeseries("Answers to nodes", "By HTTP status code. After 4xx and 5xx, nodes pull from the upstream.", unitRate,
			query{perUpstream("registry_http_requests_total", `,handler=~"blob|manifest"`, "code"), each + " {{code}}"}),
		timeseries("Answers of upstreams", "By HTTP status code; \"error\" means no response. A stock distribution image has no such metric.", unitRate,
			query{perUpstream("registry_proxy_upstream_requests_total", "", "code"), each + " {{code}}"}),
		timeseries("Upstream away", "1 while the cache counts its upstream as away: it serves what is stored. "+
			"Stale: tags that it served as last confirmed, per second.", unitNumber,
			query{"max by (upstream_host) (registry_proxy_upstream_breaker_open{" + chosen + "})", each},
			query{perUpstream("registry_proxy_stale_answers_total", ""), each + " stale"}),
		timeseries("Evictions", "Bytes that were evicted because their TTL ended (ttl) or the volume had no room (space).", unitBytes,
			query{perUpstream("registry_storage_evicted_bytes_total", "", "reason"), each + " {{reason}}"}),
		timeseries("Volumes", "Used share of each volume.", unitRatio,
			query{"1 - kubelet_volume_stats_available_bytes{" + volumes + "} / kubelet_volume_stats_capacity_bytes{" + volumes + "}",
				"{{persistentvolumeclaim}}"}),
		timeseries("Volume sizes", "Size and free bytes of each volume.", "bytes",
			query{"kubelet_volume_stats_capacity_bytes{" + volumes + "}", "{{persistentvolumeclaim}}"},
			query{"kubelet_volume_stats_available_bytes{" + volumes + "}", "{{persistentvolumeclaim}} free"}),
		timeseries("Memory", "Resident memory of the pods.", "bytes",
			query{"process_resident_memory_bytes{" + chosen + "}", "{{pod}}"}),
	)
	return object{
		"uid": "extension-extension-registry-cache", "title": "Registry Caches", "tags": []string{name}, "schemaVersion": 27, "timezone": "utc",
		"time": object{"from": "now-6h", "to": "now"}, "graphTooltip": sharedCrosshair, "templating": object{"list": []object{variable}}, "panels": panels,
	}
}

func total(direction string) string {
	return sumByUpstream("increase(registry_proxy_" + direction + "_bytes_total{" + chosen + "}[$__range])")
}

func perUpstream(metric, more string, by ...string) string {
	labels := strings.Join(append([]string{labelUpstream}, by...), ", ")
	return "sum by (" + labels + ") (rate(" + metric + "{" + chosen + more + "}[$__rate_interval]))"
}
