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
	// objectPause is how long an object that failed is not asked for, unless the upstream asks for
	// more.
	objectPause = time.Second
	// firstPause and longestPause are the pauses between requests for the root of an upstream that
	// is away.
	firstPause, longestPause = time.Second, 10 * time.Second
	longestRetryAfter        = time.Minute
	mostFailures             = 10_000
)

// failures remembers what does not answer. An object, a repository without a token and a token
// server are remembered for a time, and nothing asks for them meanwhile. After each failure the
// root of the API is asked; while it fails, too, the whole upstream is away. docs/cache.md has the
// table.
type failures struct {
	ctx  context.Context //nolint:containedctx // ends the probes
	root func(context.Context) error

	one *lru.Cache[string, failure] // by path, repository or token server

	mu       sync.Mutex
	away     *failure  // of the root
	answered time.Time // when an object was last served or refused
	probing  bool
}

type failure struct {
	cause *AwayError
	until time.Time
}

func newFailures(ctx context.Context, root func(context.Context) error) *failures {
	one, _ := lru.New[string, failure](mostFailures) // fails for a size of 0
	return &failures{ctx: ctx, root: root, one: one}
}

func (f failure) remembered() *AwayError {
	again := *f.cause
	again.Remembered, again.RetryAfter = true, max(time.Until(f.until), 0)
	return &again
}

// check returns an *AwayError while the upstream or one of these is away.
func (f *failures) check(names ...string) error {
	f.mu.Lock()
	away := f.away
	f.mu.Unlock()
	if away != nil {
		return away.remembered()
	}
	for _, name := range names {
		if one, ok := f.one.Peek(name); ok && time.Now().Before(one.until) {
			return one.remembered()
		}
	}
	return nil
}

// add remembers a failure for its pause.
func (f *failures) add(name string, away *AwayError) {
	f.one.Add(name, failure{away, time.Now().Add(max(objectPause, away.RetryAfter))})
}

// forget is called for what has answered: the upstream is not silent.
func (f *failures) forget(name string) {
	f.one.Remove(name)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answered = time.Now()
	if f.away != nil && errors.Is(f.away.cause, ErrLate) {
		f.answers()
	}
}

// suspect asks the root of the API, unless that happens already.
func (f *failures) suspect() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.probing && f.ctx.Err() == nil {
		f.probing = true
		go f.probe()
	}
}

// probe asks until the root answers.
func (f *failures) probe() {
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		err := f.root(f.ctx)
		away, isAway := errors.AsType[*AwayError](err)
		f.mu.Lock()
		works := isAway && away.answered && time.Since(f.answered) < longestPause // only the root fails
		if !isAway || works || f.ctx.Err() != nil {
			f.answers()
			f.probing = false
			f.mu.Unlock()
			return
		}
		pause = max(pause, away.RetryAfter)
		f.away = &failure{away, time.Now().Add(pause)}
		metrics.BreakerOpen.Set(1)
		f.mu.Unlock()
		select {
		case <-time.After(pause):
		case <-f.ctx.Done():
		}
	}
}

func (f *failures) answers() {
	f.away = nil
	metrics.BreakerOpen.Set(0)
}
