package monitoring

import (
	"slices"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	monitoringv1alpha1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1alpha1"
	corev1 "k8s.io/api/core/v1"
)

// TestNamesOfTheOriginal: queries, links and silences for gardener-extension-registry-cache keep
// working, and its objects are adopted.
func TestNamesOfTheOriginal(t *testing.T) {
	for _, object := range rendered(t) {
		if object.GetLabels()["component"] != "registry-cache" {
			t.Errorf("%T has the labels %v", object, object.GetLabels())
		}
	}
	configMap := get[*corev1.ConfigMap](t)
	if configMap.Name != "registry-cache-dashboards" || configMap.Data["registry-cache.dashboard.json"] == "" {
		t.Errorf("ConfigMap %s has no dashboard registry-cache.dashboard.json", configMap.Name)
	}
	if d := decoded(t); d.Title != "Registry Caches" || d.UID != "extension-extension-registry-cache" {
		t.Errorf("the dashboard is %q, %s", d.Title, d.UID)
	}
	var names []string
	for _, rule := range get[*monitoringv1.PrometheusRule](t).Spec.Groups[0].Rules {
		names = append(names, rule.Alert+rule.Record)
		if rule.Alert != "" && rule.Labels["service"] != "registry-cache-extension" {
			t.Errorf("%s has the labels %v", rule.Alert, rule.Labels)
		}
	}
	for _, name := range []string{
		"RegistryCachePersistentVolumeUsageCritical",
		"shoot:registry_proxy_pushed_bytes_total:sum", "shoot:registry_proxy_pulled_bytes_total:sum",
	} {
		if !slices.Contains(names, name) {
			t.Errorf("there is no rule %s", name)
		}
	}
	labels := map[string]string{}
	for _, relabel := range get[*monitoringv1alpha1.ScrapeConfig](t).Spec.RelabelConfigs {
		if relabel.Replacement != nil {
			labels[relabel.TargetLabel] = *relabel.Replacement
		}
	}
	if kind, ok := labels["type"]; ok || labels["job"] != "registry-cache-metrics" {
		t.Errorf("job is %q, and type %q hides that of the metrics", labels["job"], kind)
	}
}
