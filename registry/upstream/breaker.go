package upstream

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/gardener-extensions/registry-cache/registry/metrics"
)

const (
	// firstPause and longestPause are the pauses between probes. Retry-After may prolong them up to
	// longestRetryAfter.
	firstPause, longestPause = time.Second, 10 * time.Second
	longestRetryAfter        = time.Minute
)

// AwayError says that the upstream is away, or one of its repositories, and why.
type AwayError struct {
	RetryAfter time.Duration
	cause      error
}

// Error implements error.
func (e *AwayError) Error() string { return fmt.Sprintf("the upstream is away: %v", e.cause) }

func (e *AwayError) Unwrap() error { return e.cause }

// breaker is open while requests would fail. It probes in the background: no client waits for a
// probe.
type breaker struct {
	closed func() // called after a probe has closed the breaker

	mu      sync.Mutex
	open    error // why it is open, or nil
	next    time.Time
	probing bool
}

func (b *breaker) check() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open == nil {
		return nil
	}
	return &AwayError{max(time.Until(b.next), firstPause), b.open}
}

// trip opens the breaker, and calls probe until that succeeds or ctx ends.
func (b *breaker) trip(ctx context.Context, err error, probe func(context.Context) error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open != nil {
		return
	}
	b.open = err
	metrics.BreakerOpen.Inc()
	b.next = time.Now().Add(max(asksToWait(err), firstPause))
	if !b.probing {
		b.probing = true
		go b.recover(ctx, probe)
	}
}

// recover probes until the breaker is closed.
func (b *breaker) recover(ctx context.Context, probe func(context.Context) error) {
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		b.mu.Lock()
		if b.open == nil || ctx.Err() != nil {
			b.probing = false
			b.mu.Unlock()
			return
		}
		wait := time.Until(b.next)
		b.mu.Unlock()
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			continue
		}
		err := probe(ctx)
		if err == nil {
			b.close()
			b.closed()
		}
		b.mu.Lock()
		b.next = time.Now().Add(max(pause, asksToWait(err)))
		b.mu.Unlock()
	}
}

// close closes the breaker, after a probe or because an answer came although it was open.
func (b *breaker) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open != nil {
		b.open = nil
		metrics.BreakerOpen.Dec()
	}
}
