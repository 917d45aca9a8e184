package rig

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

// Event is one change of one object.
type Event struct {
	// Type is Added, Modified or Deleted. Objects that exist when the recording begins are Added.
	Type watch.EventType
	// Revision is the resource version of the change, which is the revision of etcd. A kind cluster
	// has one etcd, so revisions order all changes of one cluster.
	Revision uint64
	// Seen is when the change was received. This time orders changes in different clusters if the time
	// between them is longer than the latency of a watch.
	Seen time.Time
	// Object is the state after the change, or the last state before a deletion.
	Object *unstructured.Unstructured
}

// Recording records every change to all objects of one resource. So a scenario can prove without
// polling that an object never existed, or in which order objects changed.
type Recording struct {
	resource schema.GroupVersionResource

	mu      sync.Mutex
	changed chan struct{}
	events  []Event
	err     error

	stop    context.CancelFunc
	stopped chan struct{}
}

// startRecording lists the resource, in all namespaces if namespace is empty, and then watches it
// from the resource version of the list. No change is lost: an interrupted watch continues where it
// ended, or Events returns an error. The recording runs until Stop is called or ctx ends.
func startRecording(ctx context.Context, client dynamic.Interface, resource schema.GroupVersionResource, namespace string) (*Recording, error) {
	target := client.Resource(resource).Namespace(namespace)
	list, err := target.List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list %s before watching: %w", resource.Resource, err)
	}
	r := &Recording{resource: resource, changed: make(chan struct{}), stopped: make(chan struct{})}
	for i := range list.Items {
		if err := r.add(watch.Added, &list.Items[i]); err != nil {
			return nil, err
		}
	}
	ctx, r.stop = context.WithCancel(ctx)
	watcher, err := watchtools.NewRetryWatcherWithContext(ctx, list.GetResourceVersion(), &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return target.Watch(ctx, options)
		},
	})
	if err != nil {
		r.stop()
		return nil, fmt.Errorf("watch %s: %w", resource.Resource, err)
	}
	go r.run(ctx, watcher)
	return r, nil
}

// Events returns the events so far, in order. An error means that the watch was lost and events are
// missing, so the absence of an event proves nothing.
func (r *Recording) Events() ([]Event, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events), r.err
}

// Await returns the first event that matches, and waits for it if necessary. An error means that
// ctx has ended or that the watch is lost. To prove that an event never happened, a test creates
// another object of the resource and awaits its event. Then all earlier events are recorded.
func (r *Recording) Await(ctx context.Context, match func(Event) bool) (Event, error) {
	for seen := 0; ; {
		r.mu.Lock()
		events, err, changed := r.events, r.err, r.changed
		r.mu.Unlock()
		for ; seen < len(events); seen++ {
			if match(events[seen]) {
				return events[seen], nil
			}
		}
		if err != nil {
			return Event{}, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return Event{}, fmt.Errorf("none of the %d events of %s matched: %w", seen, r.resource.Resource, context.Cause(ctx))
		}
	}
}

// Stop ends the recording. Events still returns what was recorded.
func (r *Recording) Stop() {
	r.stop()
	<-r.stopped
}

func (r *Recording) run(ctx context.Context, watcher watch.Interface) {
	defer close(r.stopped)
	defer watcher.Stop()
	for event := range watcher.ResultChan() {
		if event.Type == watch.Bookmark {
			continue
		}
		object, ok := event.Object.(*unstructured.Unstructured)
		if !ok || event.Type == watch.Error {
			r.fail(fmt.Errorf("watch %s: the watch was lost: %v", r.resource.Resource, event.Object))
			return
		}
		if err := r.add(event.Type, object); err != nil {
			r.fail(err)
			return
		}
	}
	if ctx.Err() == nil {
		r.fail(fmt.Errorf("watch %s: the watch ended unexpectedly", r.resource.Resource))
	}
}

func (r *Recording) add(kind watch.EventType, object *unstructured.Unstructured) error {
	revision, err := strconv.ParseUint(object.GetResourceVersion(), 10, 64)
	if err != nil {
		return fmt.Errorf("watch %s: resource version of %s is not a number: %w", r.resource.Resource, object.GetName(), err)
	}
	r.update(func() {
		r.events = append(r.events, Event{Type: kind, Revision: revision, Seen: time.Now(), Object: object})
	})
	return nil
}

func (r *Recording) fail(err error) {
	r.update(func() { r.err = err })
}

func (r *Recording) update(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
	close(r.changed)
	r.changed = make(chan struct{})
}

// Named returns a function that matches the events of objects with the name.
func Named(name string) func(Event) bool {
	return func(e Event) bool { return e.Object.GetName() == name }
}

// Deleted returns a function that matches the deletion of an object with the name.
func Deleted(name string) func(Event) bool {
	return func(e Event) bool { return e.Type == watch.Deleted && e.Object.GetName() == name }
}

// FirstEvent returns the first event that matches, or false if no event matches.
func FirstEvent(events []Event, match func(Event) bool) (Event, bool) {
	if i := slices.IndexFunc(events, match); i >= 0 {
		return events[i], true
	}
	return Event{}, false
}

// SelectEvents returns the events that match, in order.
func SelectEvents(events []Event, match func(Event) bool) []Event {
	return slices.DeleteFunc(slices.Clone(events), func(e Event) bool { return !match(e) })
}
