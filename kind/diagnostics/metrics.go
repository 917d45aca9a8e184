package diagnostics

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/kind/diagnostics/bundle"
	atomic "github.com/gardener-extensions/registry-cache/kind/file"
	"github.com/gardener-extensions/registry-cache/kind/progress"
)

const (
	metricsSuffix = ".prom"
	beforeFolder  = "before"
	// metricsTimeout limits the request to one pod, since caches can hang.
	metricsTimeout = 5 * time.Second
)

// Metrics returns a source with the current metrics of the caches and the extension, the metrics of
// the previous bundle (in the folder "before"), and a table of the changes. The parameter previous
// is the path of the file from KeepMetrics; it may be missing. Metrics skips a cluster that is nil.
func Metrics(seed, shoot *rest.Config, previous string) Source {
	return Source{bundle.MetricsFolder, func(ctx context.Context, into *Folder) {
		now := map[string][]byte{}
		readMetrics(ctx, shoot, metav1.NamespaceSystem, v1alpha3.LabelUpstreamHost, now, into)
		readMetrics(ctx, seed, "extension-"+v1alpha3.ExtensionType, "", now, into)
		for pod, content := range now {
			into.Write(pod+metricsSuffix, content)
		}
		before, err := readKept(previous)
		into.Fail(beforeFolder, err)
		for pod, content := range before.Pods {
			into.Write(filepath.Join(beforeFolder, pod+metricsSuffix), content)
		}
		if len(now) > 0 {
			into.Write(bundle.MetricsSummary, []byte(compareMetrics(before, now)))
		}
	}}
}

// readMetrics gets the metrics of running pods through the proxy of the API server.
func readMetrics(ctx context.Context, config *rest.Config, namespace, selector string, now map[string][]byte, into *Folder) {
	if config == nil {
		return
	}
	to, err := connect(config)
	pods := &corev1.PodList{}
	if err == nil {
		pods, err = to.typed.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	}
	if err != nil {
		into.Fail(namespace, err)
		return
	}
	for _, pod := range pods.Items {
		if pod.Status.Phase != corev1.PodRunning {
			continue
		}
		content, err := scrape(ctx, to.typed, pod)
		into.Fail(pod.Name+metricsSuffix, err)
		if err == nil {
			now[pod.Name] = content
		}
	}
}

func scrape(ctx context.Context, client kubernetes.Interface, pod corev1.Pod) ([]byte, error) {
	ctx, cancel := progress.Within(ctx, metricsTimeout, "no metrics")
	defer cancel()
	// Pods of caches do not have the annotation.
	port := cmp.Or(pod.Annotations["prometheus.io/port"], strconv.Itoa(v1alpha3.CacheDebugPort))
	return client.CoreV1().Pods(pod.Namespace).ProxyGet("http", pod.Name, port, "/metrics", nil).DoRaw(ctx)
}

var comparedFamilies = []string{
	"registry_proxy_", "registry_http_requests_total", "registry_cache_", `controller_runtime_reconcile_total{controller="registry-cache"`,
	"controller_runtime_webhook_requests_total",
}

// series parses Prometheus's text format. It returns the values of the series with a prefix in
// comparedFamilies, except histogram buckets.
func series(content []byte) map[string]float64 {
	all := map[string]float64{}
	for line := range strings.Lines(string(content)) {
		line = strings.TrimSpace(line)
		i := strings.LastIndex(line, " ")
		if i < 0 || strings.HasPrefix(line, "#") || strings.Contains(line, "_bucket{") {
			continue
		}
		value, err := strconv.ParseFloat(line[i+1:], 64)
		for _, family := range comparedFamilies {
			if err == nil && strings.HasPrefix(line, family) {
				all[line[:i]] = value
			}
		}
	}
	return all
}

// compareMetrics returns a table of the series. It omits series that were and are zero.
func compareMetrics(before keptMetrics, now map[string][]byte) string {
	var out bytes.Buffer
	if len(before.Pods) == 0 {
		out.WriteString("There are no earlier metrics. The next bundle of this testbed is compared with this one.\n")
	} else {
		fmt.Fprintf(&out, "before: %s\n", before.At.UTC().Format(time.RFC3339))
	}
	table := tabwriter.NewWriter(&out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "before\tnow\tchange\t")
	for _, pod := range sortedKeys(now) {
		was, is := series(before.Pods[pod]), series(now[pod])
		_, known := before.Pods[pod]
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
	_ = table.Flush() // a buffer does not fail
	return out.String()
}

func number(value float64) string { return strconv.FormatFloat(value, 'f', -1, 64) }

type keptMetrics struct {
	At   time.Time         `json:"at"`
	Pods map[string][]byte `json:"pods"`
}

// KeepMetrics stores the metrics of a bundle, and the time of its newest metrics file, for the
// comparison with the next bundle. It replaces the file at the path previous atomically. If the
// bundle has no metrics, this file stays unchanged.
func KeepMetrics(bundleDir, previous string) error {
	folder := filepath.Join(bundleDir, bundle.MetricsFolder)
	names, err := fs.Glob(os.DirFS(folder), "*"+metricsSuffix)
	if err != nil || len(names) == 0 {
		return err
	}
	kept := keptMetrics{Pods: map[string][]byte{}}
	for _, name := range names {
		path := filepath.Join(folder, name)
		content, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("metrics of the bundle: %w", err)
		}
		if info, err := os.Stat(path); err == nil && info.ModTime().After(kept.At) {
			kept.At = info.ModTime()
		}
		kept.Pods[strings.TrimSuffix(name, metricsSuffix)] = content
	}
	content, err := json.Marshal(kept)
	if err == nil {
		err = atomic.Replace(previous, content, 0o644)
	}
	if err != nil {
		return fmt.Errorf("keep metrics: %w", err)
	}
	return nil
}

// readKept reads the file that KeepMetrics wrote. A missing file is not an error.
func readKept(previous string) (kept keptMetrics, err error) {
	content, err := os.ReadFile(previous)
	if errors.Is(err, fs.ErrNotExist) {
		return kept, nil
	}
	if err == nil {
		err = json.Unmarshal(content, &kept)
	}
	if err != nil {
		return keptMetrics{}, fmt.Errorf("earlier metrics: %w", err)
	}
	return kept, nil
}
