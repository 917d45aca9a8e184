package diagnostics

import (
	"cmp"
	"context"
	"path/filepath"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/kind/diagnostics/bundle"
	"github.com/gardener-extensions/registry-cache/kind/progress"
)

const (
	// portAnnotation holds the port of a pod's metrics. Caches have none: their port is
	// CacheDebugPort.
	portAnnotation     = "prometheus.io/port"
	extensionNamespace = "extension-" + v1alpha3.ExtensionType
	metricsSuffix      = ".prom"
	beforeFolder       = "before"
)

// Metrics returns a source with the metrics of the caches and the extension: the current ones,
// those that KeepMetrics stored in the file previous, in the folder "before", and a table of the
// changes. The file may be missing. A nil cluster is skipped.
func Metrics(seed, shoot *rest.Config, previous string) Source {
	return metrics{seed: seed, shoot: shoot, previous: previous}
}

type metrics struct {
	seed, shoot *rest.Config
	previous    string
}

func (m metrics) Name() string { return bundle.MetricsFolder }

func (m metrics) Collect(ctx context.Context, into *Folder) {
	now := map[string][]byte{}
	m.read(ctx, m.shoot, metav1.NamespaceSystem, v1alpha3.LabelUpstreamHost, now, into)
	m.read(ctx, m.seed, extensionNamespace, "", now, into)
	for pod, content := range now {
		into.Write(pod+metricsSuffix, content)
	}
	before, err := readKept(m.previous)
	into.Fail(beforeFolder, err)
	for pod, content := range before.Pods {
		into.Write(filepath.Join(beforeFolder, pod+metricsSuffix), content)
	}
	if len(now) > 0 {
		into.Write(bundle.MetricsSummary, []byte(compareMetrics(before.Pods, before.At, now)))
	}
}

// read gets the metrics of running pods through the proxy of the API server.
func (m metrics) read(ctx context.Context, config *rest.Config, namespace, selector string, now map[string][]byte, into *Folder) {
	if config == nil {
		return
	}
	to, err := connect(config)
	if err != nil {
		into.Fail(namespace, err)
		return
	}
	pods, err := to.typed.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
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

// metricsTimeout limits the request to one pod. Many bundles are about a cache that hangs.
const metricsTimeout = 5 * time.Second

func scrape(ctx context.Context, client kubernetes.Interface, pod corev1.Pod) ([]byte, error) {
	ctx, cancel := progress.Within(ctx, metricsTimeout, "no metrics")
	defer cancel()
	port := cmp.Or(pod.Annotations[portAnnotation], strconv.Itoa(v1alpha3.CacheDebugPort))
	return client.CoreV1().Pods(pod.Namespace).ProxyGet("http", pod.Name, port, "/metrics", nil).DoRaw(ctx)
}
