package upstream

import (
	"context"
	"errors"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/gardener-extensions/registry-cache/registry/metrics"
)

const (
	// objectPause is how long a failed object is not requested, unless Retry-After is longer.
	objectPause = time.Second
	// firstPause is the first pause between probes. It doubles up to longestPause. Retry-After extends
	// it.
	firstPause, longestPause = time.Second, 10 * time.Second
	longestRetryAfter        = time.Minute
	mostFailures             = 10_000
)

// failures remembers failures by name: that of an object, of a repository without a token, or of a
// token server. For a while after a failure, requests with its name fail at once. A failure also
// starts probes of the root of the API. While the root is away, all requests fail at once. The
// table in docs/cache.md lists the states.
type failures struct {
	ctx  context.Context //nolint:containedctx // stops the probes
	root func(context.Context) error

	one *lru.Cache[string, failure] // by path, repository or token server

	mu       sync.Mutex
	away     failure   // outage of the root; its cause is nil while the root answers
	answered time.Time // when an object was last served or refused
	asked    time.Time // when probe was last started
	probing  bool
}

type failure struct {
	cause *AwayError
	until time.Time
}

func newFailures(ctx context.Context, root func(context.Context) error) *failures {
	one, _ := lru.New[string, failure](mostFailures) // lru.New returns an error only for a size of 0
	return &failures{ctx: ctx, root: root, one: one}
}

// check returns an *AwayError while the upstream or one of the names is away.
func (f *failures) check(names ...string) error {
	f.mu.Lock()
	found := f.away
	f.mu.Unlock()
	for _, name := range names {
		if one, ok := f.one.Peek(name); ok && found.cause == nil && time.Now().Before(one.until) {
			found = one
		}
	}
	if found.cause == nil {
		return nil
	}
	again := *found.cause
	again.Remembered, again.RetryAfter = true, max(time.Until(found.until), 0)
	return &again
}

// add remembers a failure, and starts a probe of the root.
func (f *failures) add(name string, away *AwayError) {
	f.one.Add(name, failure{away, time.Now().Add(max(objectPause, away.RetryAfter))})
	f.startProbe()
}

// forget removes the failures of names, which have been answered. If the root is away only because
// it did not answer in time, forget ends this outage: the upstream does answer.
func (f *failures) forget(names ...string) {
	for _, name := range names {
		f.one.Remove(name)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answered = time.Now()
	if f.away.cause != nil && errors.Is(f.away.cause, ErrLate) {
		f.rootAnswers()
	}
}

// startProbe runs probe in the background. It does nothing without a root, while probe is running,
// or in the first second after probe was started.
func (f *failures) startProbe() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.probing && f.root != nil && f.ctx.Err() == nil && time.Since(f.asked) >= firstPause {
		f.probing, f.asked = true, time.Now()
		go f.probe()
	}
}

// probe requests the root until it answers, or until its answer is an error but objects are served.
func (f *failures) probe() {
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		err := f.root(f.ctx)
		away, isAway := errors.AsType[*AwayError](err)
		f.mu.Lock()
		works := isAway && away.status > 0 && time.Since(f.answered) < longestPause // only the root fails
		if !isAway || works || f.ctx.Err() != nil {
			f.rootAnswers()
			f.probing = false
			f.mu.Unlock()
			return
		}
		pause = max(pause, away.RetryAfter)
		f.away = failure{away, time.Now().Add(pause)}
		metrics.BreakerOpen.Set(1)
		f.mu.Unlock()
		select {
		case <-time.After(pause):
		case <-f.ctx.Done():
		}
	}
}

func (f *failures) rootAnswers() {
	f.away = failure{}
	metrics.BreakerOpen.Set(0)
}
