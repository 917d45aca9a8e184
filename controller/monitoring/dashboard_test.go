package monitoring

import (
	"encoding/json"
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
		"registry-docker-io;registry-cache": false, // the registry port serves no metrics
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
	for _, panel := range decoded(t).Panels {
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

// dashboard contains the used keys of Plutono's format.
type dashboard struct {
	UID, Title, Timezone        string
	Tags                        []string
	SchemaVersion, GraphTooltip int
	Time                        struct{ From, To string }
	Templating                  struct{ List []variable }
	Panels                      []struct {
		ID                       int
		Type, Title, Description string
		Datasource               string
		GridPos                  struct{ H, W, X, Y int }
		Targets                  []struct {
			RefID, Expr, LegendFormat string
			Instant                   bool
		}
		FieldConfig struct {
			Defaults struct {
				Unit     string
				Min, Max *float64
			}
		}
	}
}

type variable struct {
	Name, Label, Type, Datasource, Query, Definition, AllValue string
	Refresh                                                    int
	IncludeAll, Multi                                          bool
	Current                                                    struct{ Text, Value string }
}

// decoded returns the decoded dashboard, and fails the test for an unknown key.
func decoded(t *testing.T) (content dashboard) {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(get[*corev1.ConfigMap](t).Data["registry-cache.dashboard.json"]))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&content); err != nil {
		t.Fatal(err)
	}
	return content
}

func TestDashboard(t *testing.T) {
	if labels := get[*corev1.ConfigMap](t).Labels; labels["dashboard.monitoring.gardener.cloud/shoot"] != "true" {
		t.Errorf("Plutono ignores a ConfigMap with the labels %v", labels)
	}
	content := decoded(t)
	if content.Time.From == "" || content.Time.To == "" || content.SchemaVersion == 0 {
		t.Errorf("time is %+v, the version %d", content.Time, content.SchemaVersion)
	}
	for _, variable := range content.Templating.List {
		if variable.Query == "" || variable.Current.Value == "" {
			t.Errorf("the variable %s is %+v", variable.Name, variable)
		}
	}
	taken := map[any]string{}
	for _, panel := range content.Panels {
		if other, overlap := taken[panel.GridPos]; overlap {
			t.Errorf("%s overlaps with %s", panel.Title, other)
		}
		taken[panel.GridPos] = panel.Title
		if len(panel.Targets) == 0 || panel.Description == "" || panel.Datasource == "" || panel.FieldConfig.Defaults.Unit == "" {
			t.Errorf("%s lacks queries, a description, a data source or a unit", panel.Title)
		}
	}
}
