// Package retry decides when a failed operation of the controller is tried again: soon if something
// is in progress in the shoot, late if the shoot's API server does not answer.
//
// The extension library drops the delay of a RequeueAfterError of Actuator.Reconcile (v1.150.0), so
// the kind reaches the workqueue through its rate limiter.
package retry

import (
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/flowcontrol"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Kind is the kind of a failure. It determines the delay of the next attempt.
type Kind int

const (
	// Failed is a failure of no other kind. The delays are those of controller-runtime.
	Failed Kind = iota
	// InProgress is the failure of an operation that waits. The delay is 1 to 10 seconds.
	InProgress
	// Unanswered means that the shoot's API server did not answer, which blocks a worker for seconds.
	Unanswered
)

const firstPause, longestPause = 20 * time.Second, 10 * time.Minute

// delays are the shortest and the longest delay of each kind. Between them, delays are doubled.
var delays = map[Kind]struct{ shortest, longest time.Duration }{
	Failed:     {5 * time.Millisecond, 1000 * time.Second},
	InProgress: {time.Second, 10 * time.Second},
	Unanswered: {firstPause, longestPause},
}

// NewPauses returns the delays of Unanswered for a caller without a workqueue.
func NewPauses() *flowcontrol.Backoff { return flowcontrol.NewBackOff(firstPause, longestPause) }

// waiting is the error of an operation that waits for something in progress.
type waiting struct{ error }

func (w waiting) Unwrap() error { return w.error }

// Waiting marks the error of an operation that waits for something, which a retry may find done.
func Waiting(err error) error {
	if err == nil {
		return nil
	}
	return waiting{err}
}

// IsWaiting reports whether the error or one that it wraps is marked by Waiting.
func IsWaiting(err error) bool { return errors.As(err, new(waiting)) }

// Attempt identifies an operation. It is equal for all attempts of the operation.
type Attempt struct {
	Generation int64 // the Extension's generation
	Operation  string
}

// Limiter is the rate limiter of a workqueue whose delays depend on the kind of the last failure.
// It is safe for concurrent use.
type Limiter struct {
	mu       sync.Mutex
	failures map[types.NamespacedName]failure // the last attempts, if they failed
}

type failure struct {
	attempt Attempt
	kind    Kind
	since   time.Time // the time of the first failure of this kind in a row
	count   int       // the number of delays so far
}

// NewLimiter returns a Limiter without failures.
func NewLimiter() *Limiter { return &Limiter{failures: map[types.NamespacedName]failure{}} }

// IsFirst reports whether no earlier attempt of the same operation has failed.
func (l *Limiter) IsFirst(object types.NamespacedName, attempt Attempt) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failures[object].attempt != attempt
}

// Fail records a failure. The delays grow only as long as the same operation fails in the same way.
func (l *Limiter) Fail(object types.NamespacedName, attempt Attempt, kind Kind) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if last := l.failures[object]; last.attempt != attempt || last.kind != kind {
		l.failures[object] = failure{attempt: attempt, kind: kind, since: time.Now()}
	}
}

// WaitingSince returns when the operation on the object began to wait for something in progress or
// for an answer. If it does not wait, the time is zero.
func (l *Limiter) WaitingSince(object types.NamespacedName) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if last := l.failures[object]; last.kind != Failed {
		return last.since
	}
	return time.Time{}
}

// When returns the delay of the next attempt. The workqueue calls it after each failure.
func (l *Limiter) When(request reconcile.Request) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	last := l.failures[request.NamespacedName] // zero if the extension library has failed before the operation
	of, doublings := delays[last.kind], last.count
	if last.kind == InProgress {
		doublings /= 3 // each delay is used three times, so the last one is a small part of the wait
	}
	last.count++
	l.failures[request.NamespacedName] = last
	return min(of.shortest<<min(doublings, 20), of.longest)
}

// Forget ends the retries. The workqueue calls it after a success, even if the Extension is gone.
func (l *Limiter) Forget(request reconcile.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.failures, request.NamespacedName)
}

// NumRequeues returns the number of failures in a row that are of the same kind.
func (l *Limiter) NumRequeues(request reconcile.Request) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failures[request.NamespacedName].count
}
