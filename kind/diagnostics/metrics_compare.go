package diagnostics

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/gardener-extensions/registry-cache/kind/diagnostics/bundle"
)

// KeepMetrics copies the metrics of a bundle to a folder, for the next bundle to compare with. Whatever the folder had is replaced.
func KeepMetrics(bundleDir, previous string) error {
	now, _, err := readMetrics(filepath.Join(bundleDir, bundle.MetricsFolder))
	if err != nil || len(now) == 0 {
		return err
	}
	if err := os.RemoveAll(previous); err != nil {
		return fmt.Errorf("keep metrics: %w", err)
	}
	if err := os.MkdirAll(previous, 0o755); err != nil {
		return fmt.Errorf("keep metrics: %w", err)
	}
	for pod, content := range now {
		if err := os.WriteFile(filepath.Join(previous, pod+metricsSuffix), content, 0o644); err != nil {
			return fmt.Errorf("keep metrics: %w", err)
		}
	}
	return nil
}

// readMetrics reads a folder of metrics, and when it was filled. None is no error.
func readMetrics(folder string) (byPod map[string][]byte, at time.Time, err error) {
	files, err := fs.Glob(os.DirFS(folder), "*"+metricsSuffix)
	if err != nil {
		return nil, time.Time{}, err
	}
	byPod = map[string][]byte{}
	for _, file := range files {
		path := filepath.Join(folder, file)
		content, err := os.ReadFile(path)
		if err != nil {
			return byPod, at, fmt.Errorf("earlier metrics: %w", err)
		}
		if info, err := os.Stat(path); err == nil && info.ModTime().After(at) {
			at = info.ModTime()
		}
		byPod[strings.TrimSuffix(file, metricsSuffix)] = content
	}
	return byPod, at, nil
}

// worthwhile are the families that tell about pulls and reconciliations.
var worthwhile = []string{
	"registry_proxy_", "registry_http_requests_total", "registry_cache_", `controller_runtime_reconcile_total{controller="registry-cache"`,
	"controller_runtime_webhook_requests_total",
}

// series reads Prometheus's text format: the value of each series that is worthwhile, without buckets.
func series(content []byte) map[string]float64 {
	all := map[string]float64{}
	for line := range strings.Lines(string(content)) {
		line = strings.TrimSpace(line)
		i := strings.LastIndex(line, " ")
		if i < 0 || strings.HasPrefix(line, "#") || strings.Contains(line, "_bucket{") {
			continue
		}
		value, err := strconv.ParseFloat(line[i+1:], 64)
		for _, family := range worthwhile {
			if err == nil && strings.HasPrefix(line, family) {
				all[line[:i]] = value
			}
		}
	}
	return all
}

// compareMetrics lists the series that are not zero, with what they were before.
func compareMetrics(before map[string][]byte, at time.Time, now map[string][]byte) string {
	var out bytes.Buffer
	if len(before) == 0 {
		out.WriteString("There is no reading from before: the next bundle of this testbed is compared with this one.\n")
	} else {
		fmt.Fprintf(&out, "before: %s\n", at.UTC().Format(time.RFC3339))
	}
	table := tabwriter.NewWriter(&out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "before\tnow\tchange\t")
	for _, pod := range sortedKeys(now) {
		was, is := series(before[pod]), series(now[pod])
		_, known := before[pod]
		for _, name := range sortedKeys(is) {
			if is[name] == 0 && was[name] == 0 {
				continue
			}
			old, change := "-", "-"
			if known {
				old, change = number(was[name]), number(is[name]-was[name])
			}
			fmt.Fprintf(table, "%s\t%s\t%s\t  %s %s\n", old, number(is[name]), change, pod, name)
		}
	}
	_ = table.Flush() // to a buffer
	return out.String()
}

func number(value float64) string { return strconv.FormatFloat(value, 'f', -1, 64) }
