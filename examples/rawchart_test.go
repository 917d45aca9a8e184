package examples

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"io"
	"maps"
	"os"
	"regexp"
	"testing"

	gardencorev1 "github.com/gardener/gardener/pkg/apis/core/v1"

	"github.com/gardener-extensions/registry-cache/charts"
	"github.com/gardener-extensions/registry-cache/internal/helmchart"
)

var rawChartLine = regexp.MustCompile(`(?m)^  rawChart: .*$`)

// TestRawChart: the ControllerDeployment contains the current chart. The test compares the files in
// the archives, because another Go release may compress differently. With UPDATE_GOLDEN it writes
// the current chart to the ControllerDeployment.
func TestRawChart(t *testing.T) {
	want, err := helmchart.Archive(charts.Extension(), "registry-cache-extension")
	if err != nil {
		t.Fatal(err)
	}
	deployment, err := singleObject[*gardencorev1.ControllerDeployment](deploymentFile)
	if err != nil {
		t.Fatal(err)
	}
	got := deployment.Helm.RawChart
	if maps.EqualFunc(unpack(t, got), unpack(t, want), bytes.Equal) {
		return
	}
	if os.Getenv("UPDATE_GOLDEN") == "" {
		t.Fatalf("the chart in %s is not the current charts/registry-cache-extension; to update it: UPDATE_GOLDEN=1 go test ./examples", deploymentFile)
	}
	content, err := os.ReadFile(deploymentFile)
	if err != nil {
		t.Fatal(err)
	}
	line := []byte("  rawChart: " + base64.StdEncoding.EncodeToString(want))
	if err := os.WriteFile(deploymentFile, rawChartLine.ReplaceAllLiteral(content, line), 0o644); err != nil {
		t.Fatal(err)
	}
}

// unpack returns the files of a .tar.gz archive by name. For zero bytes it returns no files.
func unpack(t *testing.T, archive []byte) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	if len(archive) == 0 {
		return files
	}
	content, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	for reader := tar.NewReader(content); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, twice := files[header.Name]; twice {
			t.Errorf("%s is in the archive twice", header.Name)
		}
		if files[header.Name], err = io.ReadAll(reader); err != nil {
			t.Fatal(err)
		}
	}
}
