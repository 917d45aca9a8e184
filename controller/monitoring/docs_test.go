package monitoring

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
)

// page returns docs/observability.md as one line, because a line may end inside a name.
func page(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile("../../docs/observability.md")
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(content), "\n", " ")
}

// TestDocumentedAlerts compares the documented alerts with the deployed ones.
func TestDocumentedAlerts(t *testing.T) {
	documented, deployed := map[string]string{}, map[string]string{}
	for _, row := range regexp.MustCompile("\\| `(RegistryCache[A-Za-z]+)` \\| ([a-z]+) \\| ([0-9a-z]+) \\|").FindAllStringSubmatch(page(t), -1) {
		documented[row[1]] = row[2] + " after " + row[3]
	}
	for _, rule := range get[*monitoringv1.PrometheusRule](t).Spec.Groups[0].Rules {
		if rule.Alert != "" {
			deployed[rule.Alert] = rule.Labels["severity"] + " after " + string(*rule.For)
		} else if !strings.Contains(page(t), "`"+rule.Record+"`") {
			t.Errorf("docs/observability.md does not name %s", rule.Record)
		}
	}
	if !maps.Equal(documented, deployed) {
		t.Errorf("docs/observability.md has the alerts %v, deployed are %v", documented, deployed)
	}
}

// TestDocumentedMetrics compares the documented metrics with the scraped ones.
func TestDocumentedMetrics(t *testing.T) {
	named := regexp.MustCompile("`((?:registry_(?:http|proxy|storage)|process)_[a-z_]+)`").FindAllStringSubmatch(page(t), -1)
	var documented []string
	for _, match := range named {
		documented = append(documented, match[1])
	}
	slices.Sort(documented)
	if documented = slices.Compact(documented); !slices.Equal(documented, scraped) {
		t.Errorf("docs/observability.md has the metrics %q, scraped are %q", documented, scraped)
	}
}

// TestDocumentedObjects: the documentation names every object and panel.
func TestDocumentedObjects(t *testing.T) {
	for _, object := range rendered(t) {
		if !strings.Contains(page(t), "`"+object.GetName()+"`") {
			t.Errorf("docs/observability.md does not name %T %s", object, object.GetName())
		}
	}
	dashboard := decoded(t)
	titles := []string{dashboard.Title}
	for _, panel := range dashboard.Panels {
		titles = append(titles, panel.Title)
	}
	var documented []string
	for _, match := range regexp.MustCompile(`[^*]\*([A-Z][a-z A-Z]+)\*[^*]`).FindAllStringSubmatch(page(t), -1) {
		documented = append(documented, match[1])
	}
	for _, title := range titles {
		if !slices.Contains(documented, title) {
			t.Errorf("docs/observability.md does not name *%s*", title)
		}
	}
	for _, title := range documented {
		if !slices.Contains(titles, title) {
			t.Errorf("docs/observability.md names *%s*, but there is no such panel", title)
		}
	}
}
