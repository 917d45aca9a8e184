package monitoring

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"sigs.k8s.io/yaml"
)

// TestEachAlertIsTested: every alert has series that raise it and series that do not.
func TestEachAlertIsTested(t *testing.T) {
	files, err := filepath.Glob("testdata/*.test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	fires, silent := map[string]bool{}, map[string]bool{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var suite struct {
			Tests []struct {
				Alerts []struct {
					Name     string `json:"alertname"`
					Expected []any  `json:"exp_alerts"`
				} `json:"alert_rule_test"`
			} `json:"tests"`
		}
		if err := yaml.Unmarshal(content, &suite); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, test := range suite.Tests {
			for _, alert := range test.Alerts {
				if len(alert.Expected) > 0 {
					fires[alert.Name] = true
				} else {
					silent[alert.Name] = true
				}
			}
		}
	}
	for _, rule := range get[*monitoringv1.PrometheusRule](t).Spec.Groups[0].Rules {
		if rule.Alert != "" && (!fires[rule.Alert] || !silent[rule.Alert]) {
			t.Errorf("%s: tested firing %t, silent %t", rule.Alert, fires[rule.Alert], silent[rule.Alert])
		}
	}
}

// TestAlertsAreRouted: Gardener routes alerts by these labels, and people read the annotations.
func TestAlertsAreRouted(t *testing.T) {
	severity := regexp.MustCompile("^(critical|warning|info)$")
	for _, rule := range get[*monitoringv1.PrometheusRule](t).Spec.Groups[0].Rules {
		if rule.Alert == "" {
			continue
		}
		if rule.Labels["type"] != "shoot" || rule.Labels["visibility"] != "owner" || !severity.MatchString(rule.Labels["severity"]) {
			t.Errorf("%s has the labels %v", rule.Alert, rule.Labels)
		}
		if rule.Annotations["summary"] == "" || rule.Annotations["description"] == "" || rule.For == nil {
			t.Errorf("%s lacks a summary, a description or a duration", rule.Alert)
		}
	}
}
