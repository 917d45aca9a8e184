package controller

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var (
	// caches has one series per shoot with the extension.
	caches = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "registry_cache_extension_caches",
		Help: "Caches that the last successful reconciliation of a shoot deployed.",
	}, []string{"namespace"})

	cleaningSeconds = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "registry_cache_extension_clean_up_seconds",
		Help:    "Time to clean all nodes of a shoot, in seconds.",
		Buckets: []float64{2, 5, 10, 20, 40, 60, 90, 120, 180},
	})

	nodesSkipped = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "registry_cache_extension_nodes_passed_over_total",
		Help: "Nodes that a clean-up skipped because the cleaner could not run there.",
	})

	volumesGrown = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "registry_cache_extension_volumes_grown_total",
		Help: "Caches whose volumes were requested to grow.",
	})

	volumesStranded = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "registry_cache_extension_volumes_stranded_total",
		Help: "Volumes of caches that were given up because the nodes that they were bound to no longer exist.",
	})

	unresponsiveShoots = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "registry_cache_extension_unresponsive_shoots",
		Help: "Shoots whose last operation failed after it had blocked a worker of the controller for seconds.",
	})
)

func init() {
	metrics.Registry.MustRegister(caches, cleaningSeconds, nodesSkipped, volumesGrown, volumesStranded, unresponsiveShoots)
}
