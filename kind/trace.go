package kind

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/kind/diagnostics/bundle"
	"github.com/gardener-extensions/registry-cache/kind/logs"
	"github.com/gardener-extensions/registry-cache/kind/trace"
)

const (
	// traceDelay is how long logs may take to arrive; the order of time is kept within it.
	traceDelay = 700 * time.Millisecond
	// traceInterval is how often what is due is handed on.
	traceInterval = 200 * time.Millisecond
)

// TraceOptions say what is traced.
type TraceOptions struct {
	// Image is what is pulled, by any tag or digest of its repository.
	Image string
	// Since is how far back pulls are shown that have ended.
	Since time.Duration
	// Follow waits for further pulls, until the context ends, or, with an error, no log could be read for two minutes. Without it Trace
	// ends when no pull is under way, or, with an error, when nothing was heard of those that are for six minutes.
	Follow bool
}

// Trace shows who asked whom for an image: nodes their caches and the upstream, caches the upstream; first of pulls that have
// ended, then, as it happens, of those that are under way. It only reads logs: it starts no pull. take gets the events in the order
// of time, save that the first ones of a container that was restarted meanwhile may come late: its log has to be found again. All of
// them are returned summed up, also with an error. While the shoot's API server does not answer, caches are left out: without Follow
// that is an error, behind what nodes and upstreams tell. A mistake in the image is a *logs.UseError.
func (t *Testbed) Trace(ctx context.Context, options TraceOptions, take func(trace.Event)) (trace.Summary, error) {
	image, err := trace.ParseImage(options.Image)
	if err != nil {
		return trace.Summary{}, logs.Misuse("image: %v", err)
	}
	if err := t.attachOnce(ctx); err != nil {
		return trace.Summary{}, err
	}
	if t.Upstream(image.Host) == nil {
		hosts := strings.Join(t.upstreamHosts(), ", ")
		return trace.Summary{}, logs.Misuse("image: %s is no upstream of this testbed; there are %s", image.Host, hosts)
	}
	work := newTracing(image, take)
	work.find = func(ctx context.Context) ([]logs.Stream, error) { return t.traceStreams(ctx, work) }
	err = work.run(ctx, options)
	return trace.Sum(work.all), err
}

// tracing is one call of Trace.
type tracing struct {
	// find returns the logs that there are now, of which add was told.
	find func(context.Context) ([]logs.Stream, error)
	take func(trace.Event)

	mu     sync.Mutex
	reader *trace.Reader
	// events make events of a line, by the name of its stream.
	events map[string]func(text string) []trace.Event
	// caches and askers are the names of Services and nodes, by their addresses. One that is gone keeps its name: logs still tell of it.
	caches, askers map[string]string
	order          trace.Order
	all            []trace.Event
}

func newTracing(image trace.Image, take func(trace.Event)) *tracing {
	w := &tracing{
		take: take, events: map[string]func(string) []trace.Event{}, caches: map[string]string{}, askers: map[string]string{},
	}
	w.reader = &trace.Reader{
		Image: image, Cache: func(host string) string { return w.caches[host] },
		Asker: func(address string) string { return w.askers[bundle.WithoutPort(address)] },
	}
	return w
}

// add takes what events are made by of the lines of streams.
func (w *tracing) add(streams []logs.Stream, events func(source, text string) []trace.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, stream := range streams {
		w.events[stream.Name] = func(text string) []trace.Event { return events(stream.Name, text) }
	}
}

// one is for logs that tell one event a line.
func one(event trace.Event, ok bool) []trace.Event {
	if !ok {
		return nil
	}
	return []trace.Event{event}
}

// traceStreams are the logs of all that takes part in a pull now. It adds them, and the addresses that they name. Nodes and upstreams
// need no API server: their logs are returned with an error too.
func (t *Testbed) traceStreams(ctx context.Context, work *tracing) ([]logs.Stream, error) {
	nodes, upstreams := nodeLogs(t.shootName(), t.shoot.Nodes(), containerdUnit), t.upstreamLogs()
	work.add(nodes, func(source, text string) []trace.Event {
		node, _, _ := strings.Cut(source, "/")
		_, payload, _ := strings.Cut(text, ": ") // behind the program
		return work.reader.Containerd(node, payload)
	})
	work.add(upstreams, func(source, text string) []trace.Event { return one(work.reader.AccessLog(source, text)) })
	caches, err := t.traceCaches(ctx, work)
	return slices.Concat(nodes, caches, upstreams), err
}

// traceCaches are the logs of the caches that there are now. It adds them, and the addresses of Services and nodes.
func (t *Testbed) traceCaches(ctx context.Context, work *tracing) ([]logs.Stream, error) {
	client, err := kubernetes.NewForConfig(t.shoot.RESTConfig())
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
	caches, err := t.podLogs(ctx, t.shoot, metav1.NamespaceSystem, isCache, nil)
	if err != nil {
		return nil, err
	}
	work.know(services.Items, machines.Items, t.shootName())
	work.add(caches, func(source, text string) []trace.Event {
		return one(work.reader.CacheLog(cacheOf(services.Items, source), text))
	})
	return caches, nil
}

// cacheOf is what a pod of a cache is called: by the upstream, and by its number if it is not the first one.
func cacheOf(services []corev1.Service, pod string) string {
	for _, service := range services {
		if number, found := strings.CutPrefix(pod, service.Name+"-"); found && number == "0" {
			return "cache " + firstLabel(service.Annotations[v1alpha3.AnnotationUpstream])
		}
	}
	return pod
}

// know takes the addresses of Services and nodes.
func (w *tracing) know(services []corev1.Service, nodes []corev1.Node, shoot string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, service := range services {
		w.caches[service.Spec.ClusterIP] = "cache " + firstLabel(service.Annotations[v1alpha3.AnnotationUpstream])
	}
	for _, node := range nodes {
		for _, address := range bundle.Addresses(node) {
			w.askers[address] = strings.TrimPrefix(node.Name, shoot+"-")
		}
	}
}

// run shows what has been, and goes on from there while pulls are under way.
func (w *tracing) run(ctx context.Context, options TraceOptions) error {
	cut := time.Now()
	streams, missing := w.find(ctx)
	if missing != nil && len(streams) == 0 {
		return missing
	}
	lines, err := logs.Collect(ctx, streams, cut.Add(-options.Since))
	for _, line := range lines {
		if line.Time.Before(cut) {
			w.read(line)
		}
	}
	w.hand(w.order.All())
	if !options.Follow && missing != nil {
		return errors.Join(missing, err) // what could be read was shown, and who knows what is under way
	}
	if err != nil || !options.Follow && len(w.reader.UnderWay()) == 0 {
		return err
	}
	return w.follow(ctx, cut, options.Follow)
}

// follow hands events on until ctx ends, or, unless it is to go on, until there is nothing to wait for.
func (w *tracing) follow(ctx context.Context, since time.Time, on bool) error {
	following, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- logs.Follow(following, w.find, since, w.read) }()
	ticker := time.NewTicker(traceInterval)
	defer ticker.Stop()
	w.order.Delay = traceDelay
	watch := traceWatch{heard: time.Now()}
	for {
		select {
		case err := <-ended:
			w.flush()
			if on {
				return err // none if the context has ended: until then it was to go on
			}
			return errors.Join(err, context.Cause(ctx))
		case now := <-ticker.C:
			over, failed := watch.over(now, w.due(now), w.underWay())
			if on || !over {
				continue
			}
			stop()
			err := <-ended
			w.flush()
			return errors.Join(failed, err)
		}
	}
}

// due hands on what is due, and returns how many events that were.
func (w *tracing) due(now time.Time) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	events := w.order.Due(now)
	w.hand(events)
	return len(events)
}

func (w *tracing) underWay() []trace.Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.reader.UnderWay()
}

func (w *tracing) flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hand(w.order.All())
}

func (w *tracing) hand(events []trace.Event) {
	for _, event := range events {
		w.all = append(w.all, event)
		w.take(event)
	}
}

// read makes an event of a line, by where it is from.
func (w *tracing) read(line logs.Line) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, event := range w.events[line.Source](line.Text) {
		w.order.Add(event)
	}
}
