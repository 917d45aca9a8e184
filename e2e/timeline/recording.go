package timeline

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
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
	// Type is Added, Modified or Deleted. Objects that existed when the recording began are Added.
	Type watch.EventType
	// Revision is the resource version of the change. A kind cluster keeps all resources in one etcd, whose revision this
	// is, so revisions order changes of different resources of one cluster. They say nothing across clusters.
	Revision uint64
	// Seen is when the change arrived here. It orders changes of different clusters, up to the delay of a watch.
	Seen time.Time
	// Object is the object after the change; for Deleted the last state before it.
	Object *unstructured.Unstructured
}

// Recording is a running record of all objects of one resource.
type Recording struct {
	resource schema.GroupVersionResource

	mu      sync.Mutex
	changed chan struct{}
	events  []Event
	err     error

	stop    context.CancelFunc
	stopped chan struct{}
}

// Record lists the resource (in all namespaces when namespace is empty) and then watches it from the list's resource
// version, without a gap: an interrupted watch is taken up where it ended, and when that is not possible the recording
// fails, see Events. It runs until Stop is called or ctx ends.
func Record(ctx context.Context, client dynamic.Interface, resource schema.GroupVersionResource, namespace string) (*Recording, error) {
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

// Events returns what has happened so far, in order. The error says that the record is incomplete: the watch was lost, so
// nothing can be concluded from what is missing.
func (r *Recording) Events() ([]Event, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Event(nil), r.events...), r.err
}

// Await returns the first event, past or future, for which match is true. It fails when ctx ends or the watch is lost.
// A test that wants to say "never" makes a harmless object of the same resource in the end and awaits it: then all that
// happened before is in the record.
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
			return Event{}, fmt.Errorf("none of %d events of %s is the awaited one: %w", seen, r.resource.Resource, context.Cause(ctx))
		}
	}
}

// Stop ends the recording; what it recorded stays readable.
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
			r.fail(fmt.Errorf("the watch on %s was lost: %v", r.resource.Resource, event.Object))
			return
		}
		if err := r.add(event.Type, object); err != nil {
			r.fail(err)
			return
		}
	}
	if ctx.Err() == nil {
		r.fail(fmt.Errorf("the watch on %s ended by itself", r.resource.Resource))
	}
}

func (r *Recording) add(kind watch.EventType, object *unstructured.Unstructured) error {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return fmt.Errorf("watch on %s: %w", r.resource.Resource, err)
	}
	revision, err := strconv.ParseUint(accessor.GetResourceVersion(), 10, 64)
	if err != nil {
		return fmt.Errorf("watch on %s: resource version of %s is no number: %w", r.resource.Resource, accessor.GetName(), err)
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
