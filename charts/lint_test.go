package charts

import (
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
)

// TestChartsLint runs `helm lint --strict`: a warning is an error. It also validates the values
// with values.schema.json.
func TestChartsLint(t *testing.T) {
	for _, chart := range chartFolders(t) {
		for _, file := range valuesFiles(t, chart) {
			t.Run(strings.TrimPrefix(file, "testdata/"), func(t *testing.T) {
				result := lint.RunAll(chart, readValues(t, file), namespace, lint.WithKubeVersion(&common.KubeVersion{
					Version: "v1.36.4", Major: "1", Minor: "36",
				}))
				for _, message := range result.Messages {
					if message.Severity >= support.WarningSev {
						t.Error(message)
					}
				}
			})
		}
	}
}
