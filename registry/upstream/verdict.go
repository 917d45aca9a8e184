package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/gardener-extensions/registry-cache/registry/metrics"
)

// RefusedError is an answer with a status of 4xx except 408 and 429. It is not an outage.
type RefusedError struct {
	Status int
	// Document is the upstream's error document, reduced to codes and messages, or nil. It never
	// contains the answer of a token server.
	Document []byte
	// ContentRange is the header Content-Range of the answer, for 416.
	ContentRange string
}

// Error implements error.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("the upstream answered %d %s", e.Status, http.StatusText(e.Status))
}

// AwayError is an outage of the upstream or its token server: no answer, 408, 429, 5xx, or an
// answer that a registry never gives.
type AwayError struct {
	// RetryAfter is how long the client should wait, at most a minute, or 0.
	RetryAfter time.Duration
	// Remembered is set if the upstream was not asked because it failed recently.
	Remembered bool

	status  int  // of the answer, or 0
	noToken bool // the reason is a missing token
	cause   error
}

// Error implements error.
func (e *AwayError) Error() string {
	if e.Remembered {
		return "the upstream is away: " + e.cause.Error()
	}
	return e.cause.Error()
}

func (e *AwayError) Unwrap() error { return e.cause }

// ErrLate is the cause of an AwayError if the upstream did not answer in time.
var ErrLate = fmt.Errorf("the upstream did not answer within %s", Patience)

// verdict returns an error and closes the body, unless the answer serves the request.
func verdict(response *http.Response) error {
	status := response.StatusCode
	if status/100 == 2 && status != http.StatusNoContent { // including 203 from a proxy
		return nil
	}
	defer func() { _ = response.Body.Close() }()
	if isRefusal(status) {
		return &RefusedError{Status: status, Document: document(response.Body), ContentRange: response.Header.Get("Content-Range")}
	}
	cause := fmt.Errorf("the upstream answered %d %s", status, http.StatusText(status))
	return &AwayError{RetryAfter: min(retryAfter(response.Header, time.Now()), longestRetryAfter), status: status, cause: cause}
}

func isRefusal(status int) bool {
	return status >= 400 && status < 500 && status != http.StatusRequestTimeout && status != http.StatusTooManyRequests
}

// Unanswered reports whether a retry with another method cannot help: the upstream or its token
// server did not answer, or asks to wait.
func Unanswered(err error) bool {
	away, ok := errors.AsType[*AwayError](err)
	return ok && (away.status == 0 || away.noToken || away.RetryAfter > 0)
}

const (
	largestDocument = 16 << 10
	mostErrors      = 10
	longestMessage  = 512
)

// document reads an error document (distribution-spec, error codes), and returns its codes and
// messages. Details are dropped: they may repeat the request.
func document(body io.Reader) []byte {
	var found struct {
		Errors []struct {
			Code    string `json:"code"`
			Message string `json:"message"`
		} `json:"errors"`
	}
	content, err := io.ReadAll(io.LimitReader(body, largestDocument))
	if err != nil || json.Unmarshal(content, &found) != nil || len(found.Errors) == 0 {
		return nil
	}
	found.Errors = found.Errors[:min(len(found.Errors), mostErrors)]
	for i := range found.Errors {
		one := &found.Errors[i]
		one.Code, one.Message = printable(one.Code), printable(one.Message)
	}
	cleaned, _ := json.Marshal(found) //nolint:errchkjson // strings only
	return cleaned
}

func printable(text string) string {
	text = text[:min(len(text), longestMessage)]
	return strings.Map(func(r rune) rune {
		if !strconv.IsPrint(r) {
			return ' '
		}
		return r
	}, text)
}

// retryAfter parses the header as seconds, as a date (RFC 9110, 10.2.3), or as a Go duration, which
// ghcr.io sends.
func retryAfter(header http.Header, now time.Time) time.Duration {
	text := header.Get("Retry-After")
	if seconds, err := strconv.Atoi(text); err == nil || errors.Is(err, strconv.ErrRange) { // for ErrRange, Atoi returns the smallest or largest int
		return time.Duration(min(max(seconds, 0), 1<<20)) * time.Second
	}
	if date, err := http.ParseTime(text); err == nil {
		return max(date.Sub(now), 0)
	}
	duration, _ := time.ParseDuration(text)
	return max(duration, 0)
}

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
