package examples

import (
	"regexp"
	"strings"
	"testing"
)

// TestVersion: charts, examples and the built-in image vector have the version in the file VERSION,
// charts without the v.
func TestVersion(t *testing.T) {
	image := strings.TrimSpace(read(t, "../VERSION"))
	chart, ok := strings.CutPrefix(image, "v")
	if !ok {
		t.Fatalf("VERSION is %q, want one that begins with v", image)
	}
	chartVersion, chartReference := regexp.MustCompile(`(?m)^version: (.*)$`), regexp.MustCompile(`ref: registry.example.org/charts/[^:]*:(.*)`)
	for file, test := range map[string]struct {
		pattern *regexp.Regexp
		count   int
		want    string
	}{
		"../charts/registry-cache-extension/Chart.yaml":             {chartVersion, 1, chart},
		"../charts/registry-cache-admission/application/Chart.yaml": {chartVersion, 1, chart},
		"../charts/registry-cache-admission/runtime/Chart.yaml":     {chartVersion, 1, chart},
		"../charts/images.yaml":                                     {regexp.MustCompile(`tag: (.*)`), 2, image},
		deploymentFile:                                              {chartReference, 1, chart},
		operatorFile:                                                {chartReference, 3, chart},
	} {
		found := test.pattern.FindAllStringSubmatch(read(t, file), -1)
		if len(found) != test.count {
			t.Errorf("%s has %d versions, want %d", file, len(found), test.count)
		}
		for _, match := range found {
			if match[1] != test.want {
				t.Errorf("%s has version %s, want %s", file, match[1], test.want)
			}
		}
	}
}
