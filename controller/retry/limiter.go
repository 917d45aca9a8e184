package retry

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Kind is the kind of a failure. It determines the delay of the next attempt.
type Kind int

const (
	// Failed is any failure that is of no other kind. The delays are those of controller-runtime.
	Failed Kind = iota
	// InProgress is the failure of an operation that waits. The delay is 1 to 10 seconds.
	InProgress
	// Unanswered means that the shoot's API server did not answer. Such an attempt blocks a worker for
	// seconds, so the delay is 20 seconds to 10 minutes.
	Unanswered
)

const firstPause, longestPause = 20 * time.Second, 10 * time.Minute

// NewPauses returns the delays of Unanswered for a caller that has no workqueue of its own.
func NewPauses() *flowcontrol.Backoff {
	return flowcontrol.NewBackOff(firstPause, longestPause)
}

// Attempt identifies the operation of which a call is an attempt.
type Attempt struct {
	Generation int64 // of the Extension
	Operation  string
}

// Limiter is the rate limiter of a workqueue whose delays depend on the kind of the last failure.
// It is safe for concurrent use.
type Limiter struct {
	mu       sync.Mutex
	failures map[types.NamespacedName]failure // the last attempts, if they failed
	delays   map[Kind]workqueue.TypedRateLimiter[reconcile.Request]
}

type failure struct {
	attempt Attempt
	kind    Kind
	since   time.Time // of the first failure of this kind in a row
}

var _ workqueue.TypedRateLimiter[reconcile.Request] = &Limiter{}

// NewLimiter returns a Limiter without failures.
func NewLimiter() *Limiter {
	delays := workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request]
	return &Limiter{
		failures: map[types.NamespacedName]failure{},
		delays: map[Kind]workqueue.TypedRateLimiter[reconcile.Request]{
			Failed:     delays(5*time.Millisecond, 1000*time.Second),
			InProgress: delays(time.Second, 10*time.Second),
			Unanswered: delays(firstPause, longestPause),
		},
	}
}

// IsFirst returns whether no earlier attempt of the same operation has failed.
func (l *Limiter) IsFirst(object types.NamespacedName, attempt Attempt) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	last, failed := l.failures[object]
	return !failed || last.attempt != attempt
}

// Fail records a failure. The delays grow only as long as the same operation fails in the same way.
func (l *Limiter) Fail(object types.NamespacedName, attempt Attempt, kind Kind) {
	l.mu.Lock()
	defer l.mu.Unlock()
	last, failed := l.failures[object]
	if failed && last.attempt == attempt && last.kind == kind {
		return
	}
	if failed {
		l.delays[last.kind].Forget(reconcile.Request{NamespacedName: object})
	}
	l.failures[object] = failure{attempt, kind, time.Now()}
}

// WaitingSince returns since when the operation on the object waits for something in progress or
// for an answer, or the zero time.
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
	return l.delays[l.failures[request.NamespacedName].kind].When(request)
}

// Forget ends the retries. The workqueue calls it after a success, also of an Extension that is
// gone.
func (l *Limiter) Forget(request reconcile.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.failures, request.NamespacedName)
	for _, delay := range l.delays {
		delay.Forget(request)
	}
}

// NumRequeues returns the number of failures in a row that are of the same kind.
func (l *Limiter) NumRequeues(request reconcile.Request) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.delays[l.failures[request.NamespacedName].kind].NumRequeues(request)
}
