package shootclient

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// lookups counts how often a client was asked for, by whether there was one ("hit") or one had to be made ("miss").
var lookups = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "registry_cache_extension_shoot_client_lookups_total",
	Help: "Lookups of clients for shoots, by result: hit, or miss when one had to be made.",
}, []string{"result"})

func init() {
	metrics.Registry.MustRegister(lookups)
}
