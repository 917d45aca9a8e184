package monitoring

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"sigs.k8s.io/yaml"
)

// promtool builds Prometheus's own tool from its module and returns its path. With Go's build cache filled, which
// `make test` sees to, it takes a second, otherwise minutes.
func promtool(t *testing.T) string {
	t.Helper()
	binary, err := filepath.Abs("../../bin/promtool")
	if err != nil {
		t.Fatal(err)
	}
	const command = "github.com/prometheus/prometheus/cmd/promtool"
	build := exec.CommandContext(t.Context(), "go", "build", "-C", "../../tools/promtool", "-tags", "remove_all_sd", "-o", binary, command)
	// The Makefile's flags, and so what it has built already, whoever runs the test.
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-trimpath -buildvcs=false")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building promtool: %v\n%s", err, output)
	}
	return binary
}

// TestRules gives series to Prometheus's rule engine and compares the alerts that fire. It runs every file
// testdata/*.test.yaml against the rules as they are rendered (https://prometheus.io/docs/prometheus/latest/configuration/unit_testing_rules/).
func TestRules(t *testing.T) {
	tool, dir := promtool(t), t.TempDir()
	spec, err := yaml.Marshal(get[*monitoringv1.PrometheusRule](t).Spec)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "rules.yaml"), spec, 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, tool, "check", "rules", "--lint-fatal", filepath.Join(dir, "rules.yaml"))
	files, err := filepath.Glob("testdata/*.test.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files with tests: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			// promtool looks for rule files beside the file with the tests.
			copied := filepath.Join(dir, filepath.Base(file))
			if err := os.WriteFile(copied, content, 0o600); err != nil {
				t.Fatal(err)
			}
			run(t, tool, "test", "rules", copied)
		})
	}
}

func run(t *testing.T, command string, args ...string) {
	t.Helper()
	if output, err := exec.CommandContext(t.Context(), command, args...).CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, output)
	}
}

// TestEachAlertIsTested: for each alert there are series that raise it and series that do not.
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

// TestAlertsAreRouted: Gardener sends alerts by these labels, and people read the annotations.
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
			t.Errorf("%s says too little", rule.Alert)
		}
	}
}
