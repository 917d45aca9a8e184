package trace

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
	"github.com/gardener-extensions/registry-cache/kind/logs"
)

// Options select what is traced.
type Options struct {
	Image string        // all tags and digests of its repository are traced
	Since time.Duration // the age of the oldest events of ended pulls
	// Follow makes Run wait for further pulls until the context ends. Without Follow, Run returns
	// when no pull is running, or with an error when the running pulls have logged nothing for six
	// minutes.
	Follow bool
}

// Run calls take(event) for each event of pulls of an image, such as a request of a node or cache.
// First come the events of ended pulls, then the events of running pulls as they happen. Run only
// reads logs and starts no pull. It attaches to the testbed if needed.
//
// Events are sorted by time. Only the first events of a restarted container may be delayed, until
// Run finds the container's log. Run returns a summary of the events, even with an error. It
// returns a *logs.UsageError for an invalid image. If the shoot's API server does not answer, the
// events of caches are missing; without Follow, Run then returns an error after the events of nodes
// and upstreams. With Follow, Run fails if no log can be read for two minutes.
func Run(ctx context.Context, t *kind.Testbed, options Options, take func(Event)) (Summary, error) {
	image, err := ParseImage(options.Image)
	if err != nil {
		return Summary{}, logs.UsageErrorf("image: %v", err)
	}
	if err := t.AttachOnce(ctx); err != nil {
		return Summary{}, err
	}
	if t.Upstream(image.Host) == nil {
		hosts := strings.Join(t.Upstreams.Hosts(), ", ")
		return Summary{}, logs.UsageErrorf("image: %s is not an upstream of this testbed, use one of %s", image.Host, hosts)
	}
	w := newTracer(image, take)
	w.find = func(ctx context.Context) ([]logs.Stream, error) { return findStreams(ctx, t, w) }
	err = w.run(ctx, options)
	return Sum(w.all), err
}

// findStreams returns the current logs of nodes, caches and upstreams, and adds them to the tracer.
// Without an API server it returns an error, and the logs of nodes and upstreams.
func findStreams(ctx context.Context, t *kind.Testbed, w *tracer) ([]logs.Stream, error) {
	nodes, upstreams := logs.NodeLogs(t.ShootName(), t.Shoot.Nodes(), kind.ContainerdUnit), logs.UpstreamLogs(t)
	w.add(nodes, func(source, text string) []Event {
		node, _, _ := strings.Cut(source, "/")
		_, payload, _ := strings.Cut(text, ": ") // after the name of the program
		return w.reader.Containerd(node, payload)
	})
	w.add(upstreams, func(source, text string) []Event { return asList(w.reader.AccessLog(source, text)) })
	caches, err := findCaches(ctx, t, w)
	return slices.Concat(nodes, caches, upstreams), err
}

// findCaches returns the current logs of caches. It adds the logs and the addresses of caches and
// nodes to the tracer.
func findCaches(ctx context.Context, t *kind.Testbed, w *tracer) ([]logs.Stream, error) {
	client, err := kubernetes.NewForConfig(t.Shoot.RESTConfig())
	if err != nil {
		return nil, err
	}
	services, err := client.CoreV1().Services(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{LabelSelector: v1alpha3.LabelUpstreamHost})
	if err != nil {
		return nil, fmt.Errorf("list the services of the caches: %w", err)
	}
	machines, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list the nodes: %w", err)
	}
	caches, err := logs.PodLogs(ctx, t, t.Shoot, metav1.NamespaceSystem, logs.IsCache, nil)
	if err != nil {
		return nil, err
	}
	w.know(services.Items, machines.Items, t.ShootName())
	w.add(caches, func(source, text string) []Event {
		return asList(w.reader.CacheLog(cacheOf(services.Items, source), text))
	})
	return caches, nil
}

// cacheOf returns the name in events for a pod of a cache, for example "cache alpha". For pods
// other than the first pod of a cache, it returns the name of the pod.
func cacheOf(services []corev1.Service, pod string) string {
	for _, service := range services {
		if number, found := strings.CutPrefix(pod, service.Name+"-"); found && number == "0" {
			return "cache " + spec.ShortHost(service.Annotations[v1alpha3.AnnotationUpstream])
		}
	}
	return pod
}
