package monitoring

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
		UID: name, Title: "Registry Cache", Tags: []string{name}, SchemaVersion: 27, Timezone: "utc", GraphTooltip: 1,
		Time: span{From: "now-6h", To: "now"},
	}
	d.Templating.List = []variable{upstreamVariable()}
	d.Panels = arrange(
		timeseries("Hit ratio of blobs",
			"Share of the blobs that were served from the volume of the cache. At 100%, nothing is fetched from the upstream.", unitRatio,
			query{perUpstream("registry_proxy_hits_total", `,exported_type="blob"`) + " / " +
				perUpstream("registry_proxy_requests_total", `,exported_type="blob"`), each}),
		timeseries("Instances", "Instances of each cache that answer. At 0, nodes pull from the upstream.", unitNumber,
			query{"sum by (upstream_host) (up{" + chosen + "})", each}),
		timeseries("Traffic", "Out: bytes sent to nodes. In: bytes fetched from the upstream. The difference is the traffic that the cache saves.", unitBytes,
			query{perUpstream("registry_proxy_pushed_bytes_total", ""), each + " out"},
			query{perUpstream("registry_proxy_pulled_bytes_total", ""), each + " in"}),
		timeseries("Requests served", "Hits and misses, blobs and manifests.", unitRate,
			query{perUpstreamAnd("exported_type", "registry_proxy_hits_total", ""), each + " {{exported_type}} hit"},
			query{perUpstreamAnd("exported_type", "registry_proxy_misses_total", ""), each + " {{exported_type}} miss"}),
		timeseries("Answers to nodes", "By HTTP status code. After 4xx and 5xx, nodes pull from the upstream.", unitRate,
			query{perUpstreamAnd("code", "registry_http_requests_total", `,handler=~"blob|manifest"`), each + " {{code}}"}),
		timeseries("Answers of upstreams", "By HTTP status code; \"error\" means no response. A stock distribution image has no such metric.", unitRate,
			query{perUpstreamAnd("code", "registry_proxy_upstream_requests_total", ""), each + " {{code}}"}),
		timeseries("Volumes", "Used share of each volume.", unitRatio,
			query{"1 - kubelet_volume_stats_available_bytes{" + volumes + "} / kubelet_volume_stats_capacity_bytes{" + volumes + "}",
				"{{persistentvolumeclaim}}"}),
		timeseries("Memory", "Resident memory of the pods.", "bytes",
			query{"process_resident_memory_bytes{" + chosen + "}", "{{pod}}"}),
	)
	return d
}

func upstreamVariable() variable {
	const values = "label_values(up{" + job + "}, upstream_host)"
	return variable{
		Name: "upstream", Label: "Upstream", Type: "query", Datasource: datasource, Query: values, Definition: values, Refresh: 2,
		IncludeAll: true, Multi: true, AllValue: ".*", Current: choice{Text: "All", Value: "$__all"},
	}
}

func perUpstream(metric, more string) string {
	return sumByUpstream("rate(" + metric + "{" + chosen + more + "}[$__rate_interval])")
}

func perUpstreamAnd(label, metric, more string) string {
	return "sum by (upstream_host, " + label + ") (rate(" + metric + "{" + chosen + more + "}[$__rate_interval]))"
}
