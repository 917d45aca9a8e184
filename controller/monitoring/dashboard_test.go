package monitoring

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	monitoringv1alpha1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1alpha1"
	corev1 "k8s.io/api/core/v1"
)

// TestScrapedPods: Prometheus scrapes a target only if the regular expression matches the whole
// text "<service>;<port>".
func TestScrapedPods(t *testing.T) {
	var keep *regexp.Regexp
	for _, relabel := range get[*monitoringv1alpha1.ScrapeConfig](t).Spec.RelabelConfigs {
		if relabel.Action == "keep" {
			keep = regexp.MustCompile("^(?:" + relabel.Regex + ")$")
		}
	}
	for target, want := range map[string]bool{
		"registry-docker-io;debug":          true,
		"registry-example;debug":            true,
		"registry-docker-io;registry-cache": false, // the registry port has no metrics
		"registry-docker-io-2;debug":        false,
		"registry-quay-io;debug":            false,
		"registry-docker-io;":               false,
	} {
		if got := keep.MatchString(target); got != want {
			t.Errorf("%s: scraped %t, want %t", target, got, want)
		}
	}
}

var metricName = regexp.MustCompile(`\b(registry_[a-z_]+|process_[a-z_]+)\b`)

// TestUsedMetricsAreScraped: the ScrapeConfig lists all metrics that alerts and dashboard use.
func TestUsedMetricsAreScraped(t *testing.T) {
	var expressions []string
	for _, rule := range get[*monitoringv1.PrometheusRule](t).Spec.Groups[0].Rules {
		expressions = append(expressions, rule.Expr.String())
	}
	for _, panel := range cachesDashboard().Panels {
		for _, target := range panel.Targets {
			expressions = append(expressions, target.Expr)
		}
	}
	for _, expression := range expressions {
		for _, metric := range metricName.FindAllString(expression, -1) {
			if metric != "registry_cache" && !slices.Contains(scraped, metric) {
				t.Errorf("%s is not scraped but used by %s", metric, expression)
			}
		}
	}
	if !slices.IsSorted(scraped) {
		t.Error("the list of metrics is not sorted")
	}
}

func TestDashboard(t *testing.T) {
	configMap := get[*corev1.ConfigMap](t)
	if configMap.Labels["dashboard.monitoring.gardener.cloud/shoot"] != "true" {
		t.Errorf("Plutono ignores a ConfigMap with the labels %v", configMap.Labels)
	}
	var content dashboard
	decoder := json.NewDecoder(strings.NewReader(configMap.Data["registry-cache.dashboard.json"]))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&content); err != nil {
		t.Fatal(err)
	}
	if keys := slices.Sorted(maps.Keys(content.Time)); !slices.Equal(keys, []string{"from", "to"}) {
		t.Errorf("time has the keys %v", keys)
	}
	for _, variable := range content.Templating.List {
		if keys := slices.Sorted(maps.Keys(variable.Current)); !slices.Equal(keys, []string{"text", "value"}) {
			t.Errorf("the current value of %s has the keys %v", variable.Name, keys)
		}
	}
	taken := map[position]string{}
	for _, panel := range content.Panels {
		if other, overlap := taken[panel.GridPos]; overlap {
			t.Errorf("%s overlaps with %s", panel.Title, other)
		}
		taken[panel.GridPos] = panel.Title
		if len(panel.Targets) == 0 || panel.Description == "" || panel.Datasource == "" {
			t.Errorf("%s lacks queries, a description or a data source", panel.Title)
		}
	}
}
