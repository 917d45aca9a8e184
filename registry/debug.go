package registry

import (
	"net/http"

	distribution "github.com/distribution/distribution/v3/metrics"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/gardener-extensions/registry-cache/registry/metrics"
)

// debugHandler answers what probes and Prometheus ask for: /debug/health, which distribution
// registers with http.DefaultServeMux, and metrics.
func debugHandler(all *Config) http.Handler {
	config := all.HTTP.Debug
	mux := http.NewServeMux()
	mux.Handle("/debug/", http.DefaultServeMux)
	if config.Prometheus.Enabled {
		// These count distribution's own pull-through, and would have the names of ours.
		prometheus.Unregister(distribution.ProxyNamespace)
		gatherers := prometheus.Gatherers{prometheus.DefaultGatherer, metrics.Registry}
		mux.Handle(config.Prometheus.Path, promhttp.HandlerFor(gatherers, promhttp.HandlerOpts{}))
	}
	return mux
}
