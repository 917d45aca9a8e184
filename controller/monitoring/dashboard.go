package monitoring

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// labelDashboard marks ConfigMaps with dashboards for the Plutono of a shoot's control plane.
const labelDashboard = "dashboard.monitoring.gardener.cloud/shoot"

// dashboard and the types below contain the parts of Plutono's dashboard format that are used here.
// It is the format of Grafana 7.5.
type dashboard struct {
	UID           string   `json:"uid"`
	Title         string   `json:"title"`
	Tags          []string `json:"tags"`
	SchemaVersion int      `json:"schemaVersion"`
	Timezone      string   `json:"timezone"`
	GraphTooltip  int      `json:"graphTooltip"` // 1: all panels share the crosshair
	Time          object   `json:"time"`
	Templating    struct {
		List []variable `json:"list"`
	} `json:"templating"`
	Panels []panel `json:"panels"`
}

type object map[string]string

type variable struct {
	Name       string `json:"name"`
	Label      string `json:"label"`
	Type       string `json:"type"`
	Datasource string `json:"datasource"`
	Query      string `json:"query"`
	Definition string `json:"definition"`
	Refresh    int    `json:"refresh"` // 2: when the time range changes
	IncludeAll bool   `json:"includeAll"`
	Multi      bool   `json:"multi"`
	AllValue   string `json:"allValue"`
	Current    object `json:"current"`
}

type panel struct {
	ID          int      `json:"id"`
	Type        string   `json:"type"`
	Title       string   `json:"title"`
	Description string   `json:"description"`
	Datasource  string   `json:"datasource"`
	GridPos     position `json:"gridPos"`
	Targets     []target `json:"targets"`
	FieldConfig struct {
		Defaults field `json:"defaults"`
	} `json:"fieldConfig"`
}

type position struct {
	Height int `json:"h"`
	Width  int `json:"w"`
	X      int `json:"x"`
	Y      int `json:"y"`
}

type target struct {
	RefID        string `json:"refId"`
	Expr         string `json:"expr"`
	LegendFormat string `json:"legendFormat"`
	Instant      bool   `json:"instant,omitempty"`
}

type field struct {
	Unit string   `json:"unit"`
	Min  *float64 `json:"min,omitempty"`
	Max  *float64 `json:"max,omitempty"`
}

// query is one PromQL expression of a panel and the legend of its lines.
type query struct{ expression, legend string }

// timeseries returns a panel with a line chart.
func timeseries(title, description, unit string, queries ...query) panel {
	p := panel{Type: "timeseries", Title: title, Description: description, Datasource: datasource}
	zero, one := 0.0, 1.0
	p.FieldConfig.Defaults = field{Unit: unit, Min: &zero}
	if unit == unitRatio {
		p.FieldConfig.Defaults.Max = &one
	}
	for i, q := range queries {
		p.Targets = append(p.Targets, target{RefID: string(rune('A' + i)), Expr: q.expression, LegendFormat: q.legend})
	}
	return p
}

// totals returns a panel with one number for each upstream.
func totals(title, description string, q query) panel {
	p := timeseries(title, description, "bytes", q)
	p.Type, p.Targets[0].Instant, p.FieldConfig.Defaults.Min = "stat", true, nil
	return p
}

// arrange places the panels in two columns and numbers them.
func arrange(panels ...panel) []panel {
	const height, width = 8, 12
	for i := range panels {
		panels[i].ID = i + 1
		panels[i].GridPos = position{Height: height, Width: width, X: i % 2 * width, Y: i / 2 * height}
	}
	return panels
}

func dashboardConfigMap(namespace string) (*corev1.ConfigMap, error) {
	content, err := json.MarshalIndent(cachesDashboard(), "", "  ")
	if err != nil {
		return nil, err
	}
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Name:      name + "-dashboards",
			Namespace: namespace,
			Labels:    map[string]string{labelDashboard: "true"},
		},
		Data: map[string]string{name + ".dashboard.json": string(content) + "\n"},
	}, nil
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
func cachesDashboard() dashboard {
	d := dashboard{
		UID: "extension-extension-registry-cache", Title: "Registry Caches", Tags: []string{name}, SchemaVersion: 27, Timezone: "utc", GraphTooltip: 1,
		Time: object{"from": "now-6h", "to": "now"},
	}
	const upstreams = "label_values(up{" + job + "}, upstream_host)"
	d.Templating.List = []variable{{
		Name: "upstream", Label: "Upstream", Type: "query", Datasource: datasource, Query: upstreams, Definition: upstreams, Refresh: 2,
		IncludeAll: true, Multi: true, AllValue: ".*", Current: object{"text": "All", "value": "$__all"},
	}}
	d.Panels = arrange(
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
			query{perUpstreamAnd("type", "registry_proxy_hits_total", ""), each + " {{type}} hit"},
			query{perUpstreamAnd("type", "registry_proxy_misses_total", ""), each + " {{type}} miss"}),
		timeseries("Answers to nodes", "By HTTP status code. After 4xx and 5xx, nodes pull from the upstream.", unitRate,
			query{perUpstreamAnd("code", "registry_http_requests_total", `,handler=~"blob|manifest"`), each + " {{code}}"}),
		timeseries("Answers of upstreams", "By HTTP status code; \"error\" means no response. A stock distribution image has no such metric.", unitRate,
			query{perUpstreamAnd("code", "registry_proxy_upstream_requests_total", ""), each + " {{code}}"}),
		timeseries("Upstream away", "1 while the cache counts its upstream as away: it serves what is stored. "+
			"Stale: tags that it served as last confirmed, per second.", unitNumber,
			query{"max by (upstream_host) (registry_proxy_upstream_breaker_open{" + chosen + "})", each},
			query{perUpstream("registry_proxy_stale_answers_total", ""), each + " stale"}),
		timeseries("Evictions", "Bytes that were evicted because their TTL ended (ttl) or the volume had no room (space).", unitBytes,
			query{perUpstreamAnd("reason", "registry_storage_evicted_bytes_total", ""), each + " {{reason}}"}),
		timeseries("Volumes", "Used share of each volume.", unitRatio,
			query{"1 - kubelet_volume_stats_available_bytes{" + volumes + "} / kubelet_volume_stats_capacity_bytes{" + volumes + "}",
				"{{persistentvolumeclaim}}"}),
		timeseries("Volume sizes", "Size and free bytes of each volume.", "bytes",
			query{"kubelet_volume_stats_capacity_bytes{" + volumes + "}", "{{persistentvolumeclaim}}"},
			query{"kubelet_volume_stats_available_bytes{" + volumes + "}", "{{persistentvolumeclaim}} free"}),
		timeseries("Memory", "Resident memory of the pods.", "bytes",
			query{"process_resident_memory_bytes{" + chosen + "}", "{{pod}}"}),
	)
	return d
}

func total(direction string) string {
	return sumByUpstream("increase(registry_proxy_" + direction + "_bytes_total{" + chosen + "}[$__range])")
}

func perUpstream(metric, more string) string {
	return sumByUpstream("rate(" + metric + "{" + chosen + more + "}[$__rate_interval])")
}

func perUpstreamAnd(label, metric, more string) string {
	return "sum by (upstream_host, " + label + ") (rate(" + metric + "{" + chosen + more + "}[$__rate_interval]))"
}
