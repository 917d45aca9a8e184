package monitoring

import (
	"bytes"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	monitoringv1alpha1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener/gardener/pkg/client/kubernetes"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/internal/golden"
	"github.com/gardener-extensions/registry-cache/internal/golden/objects"
)

const namespace = "shoot--local--local"

// config returns the two caches that the series in testdata belong to.
func config() *v1alpha3.RegistryConfig {
	return &v1alpha3.RegistryConfig{Caches: []v1alpha3.RegistryCache{
		{Upstream: "docker.io"},
		{Upstream: "registry.example:5000", ServiceNameSuffix: ptr.To("example")},
	}}
}

func rendered(t *testing.T) []client.Object {
	t.Helper()
	objects, err := Objects(namespace, config())
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

func get[T client.Object](t *testing.T) T {
	t.Helper()
	var none T
	for _, object := range rendered(t) {
		if found, ok := object.(T); ok {
			return found
		}
	}
	t.Fatalf("no %T among the objects", none)
	return none
}

func TestObjectsGolden(t *testing.T) {
	var out bytes.Buffer
	for _, object := range rendered(t) {
		if object.GetNamespace() != namespace {
			t.Errorf("%T is in namespace %q", object, object.GetNamespace())
		}
		out.Write(objects.Encode(t, kubernetes.SeedScheme, object))
		out.WriteString("---\n")
	}
	golden.Compare(t, "objects.yaml", out.Bytes())
}

func TestObjectsDecodeStrictly(t *testing.T) {
	strict := serializer.NewCodecFactory(kubernetes.SeedScheme, serializer.EnableStrict).UniversalDeserializer()
	for _, object := range rendered(t) {
		if _, err := runtime.Decode(strict, objects.Encode(t, kubernetes.SeedScheme, object)); err != nil {
			t.Errorf("%T: %v", object, err)
		}
	}
}

func TestObjectsRejectsNoCaches(t *testing.T) {
	for _, config := range []*v1alpha3.RegistryConfig{nil, {}} {
		if _, err := Objects(namespace, config); err == nil {
			t.Errorf("no error for %v", config)
		}
	}
}

// TestScrapedPods: Prometheus keeps a target if the regular expression matches all of
// "<service>;<port>".
func TestScrapedPods(t *testing.T) {
	var keep *regexp.Regexp
	for _, relabel := range get[*monitoringv1alpha1.ScrapeConfig](t).Spec.RelabelConfigs {
		if relabel.Action == "keep" {
			keep = regexp.MustCompile("^(?:" + relabel.Regex + ")$")
		}
	}
	for target, want := range map[string]bool{
		"registry-docker-io;metrics":        true,
		"registry-example;metrics":          true,
		"registry-docker-io;registry-cache": false, // the registry port has no metrics
		"registry-docker-io-2;metrics":      false,
		"registry-quay-io;metrics":          false,
		"registry-docker-io;":               false,
	} {
		if got := keep.MatchString(target); got != want {
			t.Errorf("%s: scraped %t, want %t", target, got, want)
		}
	}
}

var metricName = regexp.MustCompile(`\b(registry_[a-z_]+|process_[a-z_]+)\b`)

// TestUsedMetricsAreScraped: alerts and dashboard only use metrics that the ScrapeConfig lists.
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
	decoder := json.NewDecoder(strings.NewReader(configMap.Data["registry-cache.json"]))
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
