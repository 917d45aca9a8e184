package trace

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/kind/diagnostics/bundle"
	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
	"github.com/gardener-extensions/registry-cache/kind/logs"
)

// tracing is one call of Trace.
type tracing struct {
	// find returns the logs that there are now, of which add was told.
	find func(context.Context) ([]logs.Stream, error)
	take func(Event)

	mu     sync.Mutex
	reader *Reader
	// events make events of a line, by the name of its stream.
	events map[string]func(text string) []Event
	// caches and askers are the names of Services and nodes, by their addresses. One that is gone
	// keeps its name: logs still tell of it.
	caches, askers map[string]string
	order          Order
	all            []Event
}

func newTracing(image Image, take func(Event)) *tracing {
	w := &tracing{
		take: take, events: map[string]func(string) []Event{}, caches: map[string]string{}, askers: map[string]string{},
	}
	w.reader = &Reader{
		Image: image, Cache: func(host string) string { return w.caches[host] },
		Asker: func(address string) string { return w.askers[bundle.WithoutPort(address)] },
	}
	return w
}

// add takes what events are made by of the lines of streams.
func (w *tracing) add(streams []logs.Stream, events func(source, text string) []Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, stream := range streams {
		w.events[stream.Name] = func(text string) []Event { return events(stream.Name, text) }
	}
}

// one is for logs that tell one event a line.
func one(event Event, ok bool) []Event {
	if !ok {
		return nil
	}
	return []Event{event}
}

// know takes the addresses of Services and nodes.
func (w *tracing) know(services []corev1.Service, nodes []corev1.Node, shoot string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, service := range services {
		w.caches[service.Spec.ClusterIP] = "cache " + spec.ShortHost(service.Annotations[v1alpha3.AnnotationUpstream])
	}
	for _, node := range nodes {
		for _, address := range bundle.Addresses(node) {
			w.askers[address] = strings.TrimPrefix(node.Name, shoot+"-")
		}
	}
}

// run shows what has been, and goes on from there while pulls are under way.
func (w *tracing) run(ctx context.Context, options Options) error {
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

// follow hands events on until ctx ends, or, unless it is to go on, until there is nothing to wait
// for.
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

func (w *tracing) underWay() []Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.reader.UnderWay()
}

func (w *tracing) flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hand(w.order.All())
}

func (w *tracing) hand(events []Event) {
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

// tracePatience bounds the wait for pulls of which nothing is heard. containerd gives one up that
// makes no progress for five minutes (image_pull_progress_timeout): the end of one that is silent
// for longer was never logged.
const tracePatience = 6 * time.Minute

// traceWatch decides when there is nothing to wait for any more.
type traceWatch struct {
	heard time.Time // when the last event came
	quiet time.Time // since when no pull is under way; zero while one is
}

// over says whether nothing is under way, for long enough that no log has more; or, with an error,
// that nothing was heard for too long of what is. events came since it was asked before.
func (w *traceWatch) over(now time.Time, events int, underWay []Event) (bool, error) {
	if events > 0 {
		w.heard = now
	}
	if len(underWay) > 0 {
		w.quiet = time.Time{}
		if now.Sub(w.heard) < tracePatience {
			return false, nil
		}
		first := underWay[0]
		return true, fmt.Errorf("nothing was heard for %s of what by the logs has not ended (pulls: %d; the first of %s on %s, begun at %s): "+
			"`testbed doctor` tells how the node is, and -f waits on",
			tracePatience, len(underWay), first.What, first.From, first.Time.UTC().Format(time.TimeOnly))
	}
	if w.quiet.IsZero() {
		w.quiet = now
	}
	return now.Sub(w.quiet) > 2*traceDelay, nil
}
