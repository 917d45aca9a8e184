package monitoring

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"sigs.k8s.io/yaml"
)

// promtool builds Prometheus's tool from its module and returns its path. This takes a second if
// the Go build cache is warm, as in `make test`, and otherwise minutes.
func promtool(t *testing.T) string {
	t.Helper()
	binary, err := filepath.Abs("../../bin/promtool")
	if err != nil {
		t.Fatal(err)
	}
	const command = "github.com/prometheus/prometheus/cmd/promtool"
	build := exec.CommandContext(t.Context(), "go", "build", "-C", "../../tools/promtool", "-tags", "remove_all_sd", "-o", binary, command)
	// The Makefile uses the same flags, so the build cache is shared even if an editor runs the test.
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-trimpath -buildvcs=false")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building promtool: %v\n%s", err, output)
	}
	return binary
}

// TestRules feeds series to Prometheus's rule engine and compares the firing alerts. It runs every
// testdata/*.test.yaml against the rendered rules
// (https://prometheus.io/docs/prometheus/latest/configuration/unit_testing_rules/).
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
			// promtool looks for rule files next to the test file.
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
