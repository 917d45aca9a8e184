package controller

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

// TestMetricsOfExtensions: the metrics follow from the Extensions, even after a restart.
func TestMetricsOfExtensions(t *testing.T) {
	l := newLandscape(t, newExtension([]string{alpha, beta}, nil), cluster())
	if err := l.reconcile(t); err != nil {
		t.Fatal(err)
	}
	waits, failed, foreign, ofSeed := l.extension(t), newExtension([]string{alpha}, nil), l.extension(t), l.extension(t)
	operation := func(ex *extensionsv1alpha1.Extension, state gardencorev1beta1.LastOperationState, description string) {
		ex.ResourceVersion = ""
		ex.Status.LastOperation = &gardencorev1beta1.LastOperation{Type: gardencorev1beta1.LastOperationTypeReconcile, State: state, Description: description}
	}
	operation(waits, gardencorev1beta1.LastOperationStateProcessing, "Waiting: for x")
	operation(failed, gardencorev1beta1.LastOperationStateError, "Error reconciling")
	operation(foreign, gardencorev1beta1.LastOperationStateError, "")
	operation(ofSeed, gardencorev1beta1.LastOperationStateError, "")
	failed.Namespace, foreign.Namespace, ofSeed.Namespace = "failed", "foreign", "seed"
	foreign.Spec.Type, ofSeed.Spec.Class = "another", ptr.To(extensionsv1alpha1.ExtensionClassSeed)
	failed.Status.Conditions = []gardencorev1beta1.Condition{{Type: v1alpha3.ConditionCachesHealthy, Status: gardencorev1beta1.ConditionFalse}}
	elected := make(chan struct{})
	c := &collector{extensions: fake.NewClientBuilder().WithScheme(scheme).WithObjects(waits, failed, foreign, ofSeed).Build(), elected: elected}
	if series := seriesOf(t, c); len(series) > 0 {
		t.Errorf("a replica that does not lead has the series %q", series)
	}
	close(elected)
	want := []string{
		"registry_cache_extension_caches shoot--local--local 2",
		"registry_cache_extension_conditions CachesHealthy False 1",
		"registry_cache_extension_operations Error Reconcile 1",
		"registry_cache_extension_operations Waiting Reconcile 1",
	}
	if got := seriesOf(t, c); !slices.Equal(got, want) {
		t.Errorf("series\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// seriesOf returns the names, label values and values of the series.
func seriesOf(t *testing.T, c prometheus.Collector) []string {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(c)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			text := family.GetName()
			for _, label := range metric.GetLabel() {
				text += " " + label.GetValue()
			}
			all = append(all, fmt.Sprintf("%s %g", text, metric.GetGauge().GetValue()))
		}
	}
	return all
}
