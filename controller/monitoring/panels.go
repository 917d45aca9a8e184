package monitoring

const (
	datasource = "prometheus"

	unitRatio  = "percentunit"
	unitBytes  = "Bps"
	unitRate   = "reqps"
	unitNumber = "short"

	// chosen selects the series of the caches that the viewer has chosen.
	chosen = job + `,upstream_host=~"$upstream"`
	each   = "{{upstream_host}}"
)

// cachesDashboard is the dashboard of all caches of a shoot.
func cachesDashboard() dashboard {
	d := dashboard{
		UID: name, Title: "Registry Cache", Tags: []string{name}, SchemaVersion: 27, Timezone: "utc", GraphTooltip: 1,
		Time: span{From: "now-6h", To: "now"},
	}
	d.Templating.List = []variable{upstreamVariable()}
	d.Panels = arrange(
		timeseries("Hit ratio of blobs", "The part of the blobs that came from the volume of the cache. 1 is all of them.", unitRatio,
			query{perUpstream("registry_proxy_hits_total", `,exported_type="blob"`) + " / " +
				perUpstream("registry_proxy_requests_total", `,exported_type="blob"`), each}),
		timeseries("Instances", "How many instances of each cache answer. 0: nodes pull from the registry itself.", unitNumber,
			query{"sum by (upstream_host) (up{" + chosen + "})", each}),
		timeseries("Traffic", "Out is what nodes got, in is what the upstream was asked for: the gap between them is what the cache saves.", unitBytes,
			query{perUpstream("registry_proxy_pushed_bytes_total", ""), each + " out"},
			query{perUpstream("registry_proxy_pulled_bytes_total", ""), each + " in"}),
		timeseries("Requests served", "Hits and misses, blobs and manifests.", unitRate,
			query{perUpstreamAnd("exported_type", "registry_proxy_hits_total", ""), each + " {{exported_type}} hit"},
			query{perUpstreamAnd("exported_type", "registry_proxy_misses_total", ""), each + " {{exported_type}} miss"}),
		timeseries("Answers to nodes", "By HTTP code. Nodes turn to the registry itself after 4xx and 5xx.", unitRate,
			query{perUpstreamAnd("code", "registry_http_requests_total", `,handler=~"blob|manifest"`), each + " {{code}}"}),
		timeseries("Answers of upstreams", "By HTTP code; error: no answer at all. A stock distribution image does not have it.", unitRate,
			query{perUpstreamAnd("code", "registry_proxy_upstream_requests_total", ""), each + " {{code}}"}),
		timeseries("Volumes", "The part of each volume that is in use.", unitRatio,
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
