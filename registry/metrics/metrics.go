// Package metrics defines the metrics of a cache. Metrics that distribution's pull-through cache
// also exposes have the same meaning.
package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Registry contains the metrics of this package. Prometheus's default registry contains those of
// the process.
var Registry = prometheus.NewRegistry()

// Metrics of answers, requests, the upstream and the volume. The label handler is "blob",
// "manifest" or "base", as in distribution, or "other".
var (
	Answers  = counters("registry_http_requests_total", "Answers to requests, including those with which nodes check the cache.", "handler", "method", "code")
	Duration = promauto.With(Registry).NewSummaryVec(prometheus.SummaryOpts{
		Name: "registry_http_request_duration_seconds", Help: "Duration of answers.",
	}, []string{"handler", "method"})

	Requests = byType("registry_proxy_requests_total", "Requests for blobs and manifests.")
	Hits     = byType("registry_proxy_hits_total", "Requests that were served from the volume.")
	Misses   = byType("registry_proxy_misses_total", "Requests that needed the upstream.")
	Pushed   = byType("registry_proxy_pushed_bytes_total", "Bytes that were sent to clients.")
	Shared   = byType("registry_proxy_coalesced_requests_total", "Requests that shared the upstream's answer to another request.")
	Stale    = counter("registry_proxy_stale_answers_total", "Tags that were served as last confirmed, because the upstream was away.")

	Pulled   = byType("registry_proxy_pulled_bytes_total", "Bytes that the upstream or another replica has sent.")
	Upstream = counters("registry_proxy_upstream_requests_total", "Requests to the upstream, its token server and redirect targets, by status code; "+
		"code is error for a request without an answer, and canceled for one that was given up.", "code")
	Latency = promauto.With(Registry).NewHistogram(prometheus.HistogramOpts{
		Name: "registry_proxy_upstream_header_seconds", Help: "Time until the header of an answer of the upstream has arrived.",
		Buckets: []float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
	})
	Peer        = counter("registry_proxy_replica_answers_total", "Objects and tags that another replica sent.")
	BreakerOpen = gauge("registry_proxy_upstream_breaker_open", "1 while the upstream is away: "+
		"requests get an answer from the volume or an error at once.")
	Resumed  = counter("registry_proxy_resumed_downloads_total", "Downloads that continued after a break or a restart.")
	Unstored = byType("registry_proxy_unstored_requests_total", "Answers that passed through because the volume did not take them, "+
		"or a part was asked for before the whole had arrived.")

	Damaged = counter("registry_storage_damaged_blobs_total", "Stored blobs and manifests whose content did not match their digest: "+
		"removed, and fetched again.")
	Evicted = counters("registry_storage_evicted_bytes_total", "Bytes that were evicted, by reason: ttl or space.", "reason")
	Blobs   = gauge("registry_storage_blobs", "Stored blobs and manifests.")
	Bytes   = gauge("registry_storage_bytes", "Bytes of stored blobs and manifests.")
	Free    = gauge("registry_storage_free_bytes", "Free bytes of the volume.")
	Inodes  = gauge("registry_storage_free_inodes", "Free inodes of the volume; 0 if its file system does not limit them.")
)

// byType returns a counter that starts at 0 for blobs and for manifests.
func byType(name, help string) *prometheus.CounterVec {
	vector := counters(name, help, "type")
	_, _ = vector.WithLabelValues("blob"), vector.WithLabelValues("manifest")
	return vector
}

func counters(name, help string, labels ...string) *prometheus.CounterVec {
	return promauto.With(Registry).NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

func counter(name, help string) prometheus.Counter {
	return promauto.With(Registry).NewCounter(prometheus.CounterOpts{Name: name, Help: help})
}

func gauge(name, help string) prometheus.Gauge {
	return promauto.With(Registry).NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
}
