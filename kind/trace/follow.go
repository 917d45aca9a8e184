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

const (
	orderDelay    = 700 * time.Millisecond // how long lines may take to arrive; Order.Delay
	flushInterval = 200 * time.Millisecond // between two calls of Order.Due
	// silenceTimeout limits the wait for a running pull without events. containerd ends a pull
	// without progress after five minutes (image_pull_progress_timeout).
	silenceTimeout = 6 * time.Minute
)

type tracer struct {
	find func(context.Context) ([]logs.Stream, error) // returns the current logs and calls add with them
	take func(Event)

	mu     sync.Mutex
	reader *Reader
	parse  map[string]func(text string) []Event // by the name of the stream
	// caches has the names of caches by the address of their Service, and askers has the names of
	// nodes by address. Deleted Services and nodes stay, since logs still contain their addresses.
	caches, askers map[string]string
	order          Order
	all            []Event
}

func newTracer(image Image, take func(Event)) *tracer {
	w := &tracer{
		take: take, parse: map[string]func(string) []Event{}, caches: map[string]string{}, askers: map[string]string{},
	}
	w.reader = &Reader{
		Image: image, Cache: func(host string) string { return w.caches[host] },
		Asker: func(address string) string { return w.askers[bundle.WithoutPort(address)] },
	}
	return w
}

func (w *tracer) add(streams []logs.Stream, parse func(source, text string) []Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, stream := range streams {
		w.parse[stream.Name] = func(text string) []Event { return parse(stream.Name, text) }
	}
}

// asList converts the result of a parser of single events to a list of events.
func asList(event Event, ok bool) []Event {
	if !ok {
		return nil
	}
	return []Event{event}
}

func (w *tracer) know(services []corev1.Service, nodes []corev1.Node, shoot string) {
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

// run reads the logs up to now. Then it follows them if pulls are running or Follow is set.
func (w *tracer) run(ctx context.Context, options Options) error {
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
		return errors.Join(missing, err) // it is unknown whether pulls are running
	}
	if err != nil || !options.Follow && len(w.reader.RunningPulls()) == 0 {
		return err
	}
	return w.follow(ctx, cut, options.Follow)
}

// follow calls take(event) for new events until ctx ends or, unless forever is set, no pull runs.
func (w *tracer) follow(ctx context.Context, since time.Time, forever bool) error {
	following, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- logs.Follow(following, w.find, since, w.read) }()
	ticker := time.NewTicker(flushInterval)
	defer ticker.Stop()
	w.order.Delay = orderDelay
	watch := waiter{lastEvent: time.Now()}
	for {
		select {
		case err := <-ended:
			w.flush()
			if forever {
				return err // nil if ctx has ended
			}
			return errors.Join(err, context.Cause(ctx))
		case now := <-ticker.C:
			w.mu.Lock()
			due, running := w.order.Due(now), w.reader.RunningPulls()
			w.hand(due)
			w.mu.Unlock()
			over, failed := watch.over(now, len(due), running)
			if forever || !over {
				continue
			}
			stop()
			err := <-ended
			w.flush()
			return errors.Join(failed, err)
		}
	}
}

func (w *tracer) flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hand(w.order.All())
}

func (w *tracer) hand(events []Event) {
	for _, event := range events {
		w.all = append(w.all, event)
		w.take(event)
	}
}

func (w *tracer) read(line logs.Line) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, event := range w.parse[line.Source](line.Text) {
		w.order.Add(event)
	}
}

type waiter struct {
	lastEvent time.Time
	idleSince time.Time // zero while a pull is running
}

// over reports whether the trace is complete: all pulls ended so long ago that all logs have
// arrived. It also returns true, with an error, if pulls are running but had no event for
// silenceTimeout. events is the number of events since the last call.
func (w *waiter) over(now time.Time, events int, running []Event) (bool, error) {
	if events > 0 {
		w.lastEvent = now
	}
	if len(running) > 0 {
		w.idleSince = time.Time{}
		if now.Sub(w.lastEvent) < silenceTimeout {
			return false, nil
		}
		first := running[0]
		return true, fmt.Errorf("no event for %s of %d pulls whose end is not in the logs, the first of %s on %s since %s: "+
			"`testbed doctor` checks the node, and -f waits longer",
			silenceTimeout, len(running), first.What, first.From, first.Time.UTC().Format(time.TimeOnly))
	}
	if w.idleSince.IsZero() {
		w.idleSince = now
	}
	return now.Sub(w.idleSince) > 2*orderDelay, nil
}
