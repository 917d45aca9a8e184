package kind

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
	// Follow waits for further pulls, until the context ends. Without it Trace ends when no pull is under way, or, with an error, when
	// nothing was heard of those that are for six minutes.
	Follow bool
}

// Trace shows who asked whom for an image: nodes their caches and the upstream, caches the upstream; first of pulls that have
// ended, then, as it happens, of those that are under way. It only reads logs: it starts no pull. take gets the events in the order
// of time. All of them are returned summed up, also with an error. A mistake in the image is a *logs.UseError.
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
	work := &tracing{take: take, events: map[string]func(string) []trace.Event{}}
	services, _, err := listCaches(ctx, t.shoot)
	if err != nil {
		return trace.Summary{}, err
	}
	if work.reader, err = t.traceReader(ctx, image, services); err != nil {
		return trace.Summary{}, err
	}
	if err := t.traceStreams(ctx, work, services); err != nil {
		return trace.Summary{}, err
	}
	err = work.run(ctx, options)
	return trace.Sum(work.all), err
}

// tracing is one call of Trace.
type tracing struct {
	reader  *trace.Reader
	streams []logs.Stream
	// events make events of a line, by the name of its stream.
	events map[string]func(text string) []trace.Event
	take   func(trace.Event)

	mu    sync.Mutex
	order trace.Order
	all   []trace.Event
}

func (w *tracing) add(streams []logs.Stream, events func(source, text string) []trace.Event) {
	for _, stream := range streams {
		w.streams = append(w.streams, stream)
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

// traceStreams adds the logs of all that takes part in a pull.
func (t *Testbed) traceStreams(ctx context.Context, work *tracing, services []corev1.Service) error {
	caches, err := t.podLogs(ctx, t.shoot, metav1.NamespaceSystem, isCache, nil)
	if err != nil {
		return err
	}
	work.add(nodeLogs(t.shootName(), t.shoot.Nodes(), containerdUnit), func(source, text string) []trace.Event {
		node, _, _ := strings.Cut(source, "/")
		_, payload, _ := strings.Cut(text, ": ") // behind the program
		return work.reader.Containerd(node, payload)
	})
	work.add(caches, func(source, text string) []trace.Event {
		return one(work.reader.CacheLog(cacheOf(services, source), text))
	})
	work.add(t.upstreamLogs(), func(source, text string) []trace.Event { return one(work.reader.AccessLog(source, text)) })
	return nil
}

// cacheOf is what a pod of a cache is called: by the upstream, and by its number if it is not the first one.
func cacheOf(services []corev1.Service, pod string) string {
	for _, service := range services {
		if number, found := strings.CutPrefix(pod, service.Name+"-"); found && number == "0" {
			return "cache " + firstLabel(service.Annotations["upstream"])
		}
	}
	return pod
}

// traceReader knows the addresses of Services and nodes.
func (t *Testbed) traceReader(ctx context.Context, image trace.Image, services []corev1.Service) (*trace.Reader, error) {
	api, err := client.New(t.shoot.RESTConfig(), client.Options{})
	if err != nil {
		return nil, err
	}
	nodes := &corev1.NodeList{}
	if err := api.List(ctx, nodes); err != nil {
		return nil, fmt.Errorf("list the nodes: %w", err)
	}
	names := map[string]string{}
	for _, service := range services {
		names[service.Spec.ClusterIP] = "cache " + firstLabel(service.Annotations["upstream"])
	}
	askers := map[string]string{}
	for _, node := range nodes.Items {
		for _, address := range bundle.Addresses(node) {
			askers[address] = strings.TrimPrefix(node.Name, t.shootName()+"-")
		}
	}
	return &trace.Reader{
		Image: image, Cache: func(host string) string { return names[host] },
		Asker: func(address string) string { return askers[bundle.WithoutPort(address)] },
	}, nil
}

// run shows what has been, and goes on from there while pulls are under way.
func (w *tracing) run(ctx context.Context, options TraceOptions) error {
	cut := time.Now()
	lines, err := logs.Collect(ctx, w.streams, cut.Add(-options.Since))
	for _, line := range lines {
		if line.Time.Before(cut) {
			w.read(line)
		}
	}
	w.hand(w.order.All())
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
	go func() { ended <- logs.Follow(following, w.streams, since, w.read) }()
	ticker := time.NewTicker(traceInterval)
	defer ticker.Stop()
	w.order.Delay = traceDelay
	watch := traceWatch{heard: time.Now()}
	for {
		select {
		case err := <-ended:
			w.flush()
			if on {
				return err // until the context ends, which it has
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
