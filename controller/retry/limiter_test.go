package retry

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

var (
	object  = types.NamespacedName{Namespace: "shoot--local--local", Name: "registry-cache"}
	request = reconcile.Request{NamespacedName: object}
)

// TestDelays checks the delays after failures of each kind.
func TestDelays(t *testing.T) {
	const s, m = time.Second, time.Minute
	for name, test := range map[string]struct {
		kind Kind
		want []time.Duration
	}{
		"failed":      {Failed, []time.Duration{5 * s / 1000, 10 * s / 1000, 20 * s / 1000}},
		"in progress": {InProgress, []time.Duration{s, s, s, 2 * s, 2 * s, 2 * s, 4 * s, 4 * s, 4 * s, 8 * s, 8 * s, 8 * s, 10 * s, 10 * s}},
		"unanswered":  {Unanswered, []time.Duration{20 * s, 40 * s, 80 * s, 160 * s, 320 * s, 10 * m, 10 * m}},
	} {
		t.Run(name, func(t *testing.T) {
			l := NewLimiter()
			var delays []time.Duration
			for range test.want {
				l.Fail(object, Attempt{}, test.kind)
				delays = append(delays, l.When(request))
			}
			if !slices.Equal(delays, test.want) || l.NumRequeues(request) != len(test.want) {
				t.Errorf("%d delays: %s, want %s", l.NumRequeues(request), delays, test.want)
			}
		})
	}
}

// TestDelaysStartAgain checks what resets the delays.
func TestDelaysStartAgain(t *testing.T) {
	first := Attempt{Generation: 1, Operation: "reconcile"}
	for name, change := range map[string]func(*Limiter){
		"success":        func(l *Limiter) { l.Forget(request) },
		"another kind":   func(l *Limiter) { l.Fail(object, first, Unanswered) },
		"new generation": func(l *Limiter) { l.Fail(object, Attempt{2, "reconcile"}, InProgress) },
		"new operation":  func(l *Limiter) { l.Fail(object, Attempt{1, "delete"}, InProgress) },
	} {
		t.Run(name, func(t *testing.T) {
			l := NewLimiter()
			for range 3 {
				l.Fail(object, first, InProgress)
				l.When(request)
			}
			change(l)
			l.Fail(object, first, InProgress)
			if delay := l.When(request); delay != time.Second {
				t.Errorf("the delay is %s", delay)
			}
		})
	}
}

func TestIsFirst(t *testing.T) {
	l, reconcile := NewLimiter(), Attempt{1, "reconcile"}
	assert := func(attempt Attempt, want bool) {
		t.Helper()
		if got := l.IsFirst(object, attempt); got != want {
			t.Errorf("%v is the first: %t", attempt, got)
		}
	}
	assert(reconcile, true)
	l.Fail(object, reconcile, InProgress)
	assert(reconcile, false)
	assert(Attempt{1, "delete"}, true)
	assert(Attempt{2, "reconcile"}, true)
	l.Forget(request)
	assert(reconcile, true)
}

func TestWaiting(t *testing.T) {
	plain := errors.New("gone")
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"nil": {Waiting(nil), false}, "plain": {plain, false}, "waiting": {Waiting(plain), true},
		"wrapped": {fmt.Errorf("x: %w", Waiting(plain)), true}, "joined": {errors.Join(plain, Waiting(plain)), true},
	} {
		if got := IsWaiting(test.err); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	if !errors.Is(Waiting(plain), plain) || Waiting(plain).Error() != "gone" {
		t.Error("the cause is lost")
	}
}
