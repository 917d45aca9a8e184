package bulkhead

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gardener/gardener/extensions/pkg/controller/extension"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"github.com/go-logr/logr"
	"k8s.io/client-go/util/workqueue"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

const hang = 10 * time.Second

var errHangs = errors.New("no answer")

// fakeActuator is an actuator whose operations on some shoots hang and then fail.
type fakeActuator struct {
	mu      sync.Mutex
	hanging map[string]bool
	// done are the shoots whose last operation succeeded. calls counts all operations.
	done  map[string]bool
	calls map[string]int
	// held is the number of operations that hang now, and most is the maximum of held.
	held, most int
}

func (s *fakeActuator) Reconcile(_ context.Context, _ logr.Logger, ex *extensionsv1alpha1.Extension) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls[ex.Namespace]++
	if s.done[ex.Namespace] = !s.hanging[ex.Namespace]; s.done[ex.Namespace] {
		return nil
	}
	s.held++
	s.most = max(s.most, s.held)
	s.mu.Unlock()
	<-time.After(hang)
	s.mu.Lock()
	s.held--
	return fmt.Errorf("shoot %s: %w", ex.Namespace, errHangs)
}

func (s *fakeActuator) Delete(ctx context.Context, log logr.Logger, ex *extensionsv1alpha1.Extension) error {
	return s.Reconcile(ctx, log, ex)
}

func (s *fakeActuator) ForceDelete(ctx context.Context, log logr.Logger, ex *extensionsv1alpha1.Extension) error {
	return s.Reconcile(ctx, log, ex)
}

func (s *fakeActuator) Restore(ctx context.Context, log logr.Logger, ex *extensionsv1alpha1.Extension) error {
	return s.Reconcile(ctx, log, ex)
}

func (s *fakeActuator) Migrate(ctx context.Context, log logr.Logger, ex *extensionsv1alpha1.Extension) error {
	return s.Reconcile(ctx, log, ex)
}

// setHanging makes the shoots hang or answer from now on.
func (s *fakeActuator) setHanging(hanging bool, namespaces []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.most = 0
	for _, namespace := range namespaces {
		s.hanging[namespace] = hanging
	}
}

func (s *fakeActuator) missing(namespaces []string) (missing []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, namespace := range namespaces {
		if !s.done[namespace] {
			missing = append(missing, namespace)
		}
	}
	return missing
}

func newShoots() *fakeActuator {
	return &fakeActuator{hanging: map[string]bool{}, done: map[string]bool{}, calls: map[string]int{}}
}

func numbered(kind string, n int) []string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("%s-%d", kind, i))
	}
	return all
}

func inNamespace(namespace string) *extensionsv1alpha1.Extension {
	ex := &extensionsv1alpha1.Extension{}
	ex.Namespace, ex.Name = namespace, v1alpha3.ExtensionType
	return ex
}

// work processes a queue as controller-runtime does, until the test ends.
func work(t *testing.T, workers int, actuator extension.Actuator) workqueue.TypedRateLimitingInterface[string] {
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())
	t.Cleanup(queue.ShutDown)
	for range workers {
		go func() {
			for {
				namespace, stop := queue.Get()
				if stop {
					return
				}
				if err := actuator.Reconcile(t.Context(), logr.Discard(), inNamespace(namespace)); err != nil {
					queue.AddRateLimited(namespace)
				} else {
					queue.Forget(namespace)
				}
				queue.Done(namespace)
			}
		}()
	}
	return queue
}

// TestHangingShootsDelayNoOther uses more hanging shoots than workers. The first reconciliation of
// a hanging shoot may block any worker. From then on these shoots block at most half of the
// workers, and do not delay other shoots.
func TestHangingShootsDelayNoOther(t *testing.T) {
	const workers = 4
	synctest.Test(t, func(t *testing.T) {
		s := newShoots()
		hanging, healthy := numbered("hanging", 3*workers), numbered("healthy", 100)
		s.setHanging(true, hanging)
		b := New(s, workers).(*bulkhead)
		queue := work(t, workers, b)
		for _, namespace := range hanging {
			queue.Add(namespace)
		}
		<-time.After(10 * hang)
		s.setHanging(true, nil)
		for round := range 20 {
			for _, namespace := range healthy {
				queue.Add(namespace)
			}
			synctest.Wait()
			if missing := s.missing(healthy); len(missing) > 0 {
				t.Fatalf("round %d: %d shoots wait for those that hang", round, len(missing))
			}
			clear(s.done)
			<-time.After(hang / 3)
		}
		if s.most != workers/2 {
			t.Errorf("%d workers were blocked at the same time, want %d", s.most, workers/2)
		}
		<-time.After(20 * time.Minute) // the longest backoff is 1,000 seconds
		for _, namespace := range hanging {
			if s.calls[namespace] < 2 {
				t.Errorf("%s was tried %d times", namespace, s.calls[namespace])
			}
		}

		s.setHanging(false, hanging)
		<-time.After(20 * time.Minute)
		if missing := s.missing(hanging); len(missing) > 0 {
			t.Errorf("%v were not tried after they answered again", missing)
		}
		if len(b.unresponsive) > 0 {
			t.Errorf("%v still count as unresponsive", b.unresponsive)
		}
	})
}

// TestBulkheadGuardsEveryOperation checks all operations except ForceDelete. While the only slot is
// in use, an operation does not call the actuator, but returns the previous error.
func TestBulkheadGuardsEveryOperation(t *testing.T) {
	for name, operate := range map[string]func(extension.Actuator) func(context.Context, logr.Logger, *extensionsv1alpha1.Extension) error{
		"reconcile": func(a extension.Actuator) func(context.Context, logr.Logger, *extensionsv1alpha1.Extension) error {
			return a.Reconcile
		},
		"delete": func(a extension.Actuator) func(context.Context, logr.Logger, *extensionsv1alpha1.Extension) error {
			return a.Delete
		},
		"restore": func(a extension.Actuator) func(context.Context, logr.Logger, *extensionsv1alpha1.Extension) error {
			return a.Restore
		},
		"migrate": func(a extension.Actuator) func(context.Context, logr.Logger, *extensionsv1alpha1.Extension) error {
			return a.Migrate
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newShoots()
				b := New(s, 1).(*bulkhead)
				do := func(namespace string) error { return operate(b)(t.Context(), logr.Discard(), inNamespace(namespace)) }
				both := numbered("hanging", 2)
				s.setHanging(true, both)
				for _, namespace := range both {
					if err := do(namespace); !errors.Is(err, errHangs) {
						t.Fatalf("error = %v", err)
					}
				}
				<-time.After(hang) // from now on the first shoot may be tried again
				ended := make(chan error)
				go func() { ended <- do(both[0]) }()
				synctest.Wait()
				if err := do(both[1]); !errors.Is(err, errHangs) || !strings.Contains(err.Error(), "other unresponsive") || s.calls[both[1]] != 1 {
					t.Errorf("error = %v after %d calls", err, s.calls[both[1]])
				}
				if err := do("healthy"); err != nil {
					t.Errorf("a responsive shoot: %v", err)
				}
				<-ended
				if err := do(both[0]); !errors.Is(err, errHangs) || s.calls[both[0]] != 2 {
					t.Errorf("too early: error = %v after %d calls", err, s.calls[both[0]])
				}
			})
		})
	}
}

// TestQuickFailuresDoNotCount: after a quick failure, such as that of an invalid configuration, the
// next attempt is not delayed.
func TestQuickFailuresDoNotCount(t *testing.T) {
	b := New(quick{newShoots()}, 1).(*bulkhead)
	for range 2 {
		if err := b.Reconcile(t.Context(), logr.Discard(), inNamespace("one")); !errors.Is(err, errHangs) {
			t.Errorf("error = %v", err)
		}
	}
	if len(b.unresponsive) > 0 {
		t.Errorf("%v count as unresponsive", b.unresponsive)
	}
}

// quick is an actuator whose Reconcile fails immediately.
type quick struct{ *fakeActuator }

func (quick) Reconcile(context.Context, logr.Logger, *extensionsv1alpha1.Extension) error {
	return errHangs
}

// TestPanicFreesTheSlot checks a panic of the actuator, from which controller-runtime recovers.
func TestPanicFreesTheSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShoots()
		s.setHanging(true, []string{"one", "two"})
		b := New(s, 1).(*bulkhead)
		reconcile := func(namespace string) error { return b.Reconcile(t.Context(), logr.Discard(), inNamespace(namespace)) }
		for _, namespace := range []string{"one", "two"} {
			if err := reconcile(namespace); err == nil {
				t.Fatal("no error")
			}
		}
		<-time.After(hang)
		b.actuator = panicking{s}
		func() {
			defer func() { _ = recover() }()
			_ = reconcile("one")
		}()
		b.actuator = s
		if _ = reconcile("two"); s.calls["two"] != 2 {
			t.Errorf("the other shoot was tried %d times", s.calls["two"])
		}
	})
}

type panicking struct{ *fakeActuator }

func (panicking) Reconcile(context.Context, logr.Logger, *extensionsv1alpha1.Extension) error {
	panic("x")
}

// TestDeletedShootsAreForgotten checks that a shoot without attempts for an hour is removed.
func TestDeletedShootsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShoots()
		s.setHanging(true, []string{"gone"})
		b := New(s, 2).(*bulkhead)
		_ = b.Reconcile(t.Context(), logr.Discard(), inNamespace("gone"))
		<-time.After(forgetAfter / 2)
		_ = b.Reconcile(t.Context(), logr.Discard(), inNamespace("other"))
		if len(b.unresponsive) != 1 {
			t.Error("it was forgotten too early")
		}
		<-time.After(forgetAfter)
		_ = b.Reconcile(t.Context(), logr.Discard(), inNamespace("other"))
		if len(b.unresponsive) != 0 {
			t.Errorf("%v still counts", b.unresponsive)
		}
	})
}
