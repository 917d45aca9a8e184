package charts

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/internal/golden"
)

func TestChartsGolden(t *testing.T) {
	for _, chart := range chartFolders(t) {
		for _, file := range valuesFiles(t, chart) {
			name := strings.TrimSuffix(filepath.Base(file), valuesSuffix)
			t.Run(chart+"/"+name, func(t *testing.T) {
				got, err := render(t, chart, readValues(t, file))
				if err != nil {
					t.Fatal(err)
				}
				if len(decode(t, got)) == 0 {
					t.Error("the chart renders to nothing")
				}
				golden.Compare(t, filepath.Join(chart, name+".yaml"), got)
			})
		}
	}
}
