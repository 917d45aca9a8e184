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

const (
	// traceDelay is how long logs may take to arrive; the order of time is kept within it.
	traceDelay = 700 * time.Millisecond
	// traceInterval is how often what is due is handed on.
	traceInterval = 200 * time.Millisecond
)

// Options select what is traced.
type Options struct {
	// Image is what is pulled, by any tag or digest of its repository.
	Image string
	// Since is how far back pulls are shown that have ended.
	Since time.Duration
	// Follow waits for further pulls, until the context ends, or, with an error, no log could be read
	// for two minutes. Without it Trace ends when no pull is under way, or, with an error, when
	// nothing was heard of those that are for six minutes.
	Follow bool
}

// Run shows who asked whom for an image: nodes their caches and the upstream, caches the
// upstream; first of pulls that have ended, then, as it happens, of those that are under way. It
// only reads logs: it starts no pull. take gets the events in the order of time, save that the
// first ones of a container that was restarted meanwhile may come late: its log has to be found
// again. All of them are returned summed up, also with an error. While the shoot's API server does
// not answer, caches are left out: without Follow that is an error, behind what nodes and upstreams
// tell. A mistake in the image is a *logs.UseError.
func Run(ctx context.Context, t *kind.Testbed, options Options, take func(Event)) (Summary, error) {
	image, err := ParseImage(options.Image)
	if err != nil {
		return Summary{}, logs.Misuse("image: %v", err)
	}
	if err := t.AttachOnce(ctx); err != nil {
		return Summary{}, err
	}
	if t.Upstream(image.Host) == nil {
		hosts := strings.Join(t.Upstreams.Hosts(), ", ")
		return Summary{}, logs.Misuse("image: %s is no upstream of this testbed; there are %s", image.Host, hosts)
	}
	work := newTracing(image, take)
	work.find = func(ctx context.Context) ([]logs.Stream, error) { return traceStreams(ctx, t, work) }
	err = work.run(ctx, options)
	return Sum(work.all), err
}

// traceStreams are the logs of all that takes part in a pull now. It adds them, and the addresses
// that they name. Nodes and upstreams need no API server: their logs are returned with an error
// too.
func traceStreams(ctx context.Context, t *kind.Testbed, work *tracing) ([]logs.Stream, error) {
	nodes, upstreams := logs.NodeLogs(t.ShootName(), t.Shoot.Nodes(), kind.ContainerdUnit), logs.UpstreamLogs(t)
	work.add(nodes, func(source, text string) []Event {
		node, _, _ := strings.Cut(source, "/")
		_, payload, _ := strings.Cut(text, ": ") // behind the program
		return work.reader.Containerd(node, payload)
	})
	work.add(upstreams, func(source, text string) []Event { return one(work.reader.AccessLog(source, text)) })
	caches, err := traceCaches(ctx, t, work)
	return slices.Concat(nodes, caches, upstreams), err
}

// traceCaches are the logs of the caches that there are now. It adds them, and the addresses of
// Services and nodes.
func traceCaches(ctx context.Context, t *kind.Testbed, work *tracing) ([]logs.Stream, error) {
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
	work.know(services.Items, machines.Items, t.ShootName())
	work.add(caches, func(source, text string) []Event {
		return one(work.reader.CacheLog(cacheOf(services.Items, source), text))
	})
	return caches, nil
}

// cacheOf is what a pod of a cache is called: by the upstream, and by its number if it is not the
// first one.
func cacheOf(services []corev1.Service, pod string) string {
	for _, service := range services {
		if number, found := strings.CutPrefix(pod, service.Name+"-"); found && number == "0" {
			return "cache " + spec.ShortHost(service.Annotations[v1alpha3.AnnotationUpstream])
		}
	}
	return pod
}
