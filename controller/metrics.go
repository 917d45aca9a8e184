package controller

import (
	"context"
	"strings"
	"time"

	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	controllerutilspredicate "github.com/gardener/gardener/pkg/controllerutils/predicate"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

var (
	cleaningSeconds = promauto.With(metrics.Registry).NewHistogram(prometheus.HistogramOpts{
		Name:    "registry_cache_extension_clean_up_seconds",
		Help:    "Time to clean all nodes of a shoot, in seconds.",
		Buckets: []float64{2, 5, 10, 20, 40, 60, 90, 120, 180},
	})
	nodesSkipped    = counter("registry_cache_extension_nodes_skipped_total", "Nodes that a clean-up skipped because the cleaner could not run there.")
	volumesGrown    = counter("registry_cache_extension_volumes_grown_total", "Claims of caches whose growth was requested.")
	volumesStranded = counter("registry_cache_extension_volumes_stranded_total",
		"Volumes of caches that were given up because the nodes that they were bound to no longer exist.")

	cachesOf = prometheus.NewDesc("registry_cache_extension_caches",
		"Caches that are deployed to a shoot.", []string{"namespace"}, nil)
	operations = prometheus.NewDesc("registry_cache_extension_operations",
		"Extensions by their last operation and its state. One that waits is Waiting for two minutes, then Error.", []string{"type", "state"}, nil)
	conditionsOf = prometheus.NewDesc("registry_cache_extension_conditions",
		"Extensions by condition and its status.", []string{"condition", "status"}, nil)
)

func counter(name, help string) prometheus.Counter {
	return promauto.With(metrics.Registry).NewCounter(prometheus.CounterOpts{Name: name, Help: help})
}

// collector collects metrics of all Extensions from their current status, so that the metrics are
// correct after a restart, and disappear with the Extension. Only the leader exposes them.
type collector struct {
	extensions client.Reader // the manager's cache
	classes    []extensionsv1alpha1.ExtensionClass
	elected    <-chan struct{}
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(to chan<- *prometheus.Desc) {
	to <- cachesOf
	to <- operations
	to <- conditionsOf
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(to chan<- prometheus.Metric) {
	select {
	case <-c.elected:
	default:
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	all := &extensionsv1alpha1.ExtensionList{}
	if err := c.extensions.List(ctx, all, client.UnsafeDisableDeepCopy); err != nil {
		return
	}
	type series struct {
		of            *prometheus.Desc
		first, second string
	}
	counts := map[series]float64{}
	isOurs := []predicate.Predicate{controllerutilspredicate.HasClass(c.classes...), controllerutilspredicate.HasType(v1alpha3.ExtensionType)}
	for i := range all.Items {
		ex := &all.Items[i]
		if !controllerutilspredicate.EvalGeneric(ex, isOurs...) {
			continue
		}
		if state, err := v1alpha3.DecodeState(ex.Status.State); err == nil && state.RegistryConfig != nil {
			to <- prometheus.MustNewConstMetric(cachesOf, prometheus.GaugeValue, float64(len(state.Caches)), ex.Namespace)
		}
		if last := ex.Status.LastOperation; last != nil {
			state := string(last.State)
			if strings.HasPrefix(last.Description, waiting) {
				state = "Waiting"
			}
			counts[series{operations, string(last.Type), state}]++
		}
		for _, condition := range ex.Status.Conditions {
			counts[series{conditionsOf, string(condition.Type), string(condition.Status)}]++
		}
	}
	for s, count := range counts {
		to <- prometheus.MustNewConstMetric(s.of, prometheus.GaugeValue, count, s.first, s.second)
	}
}
