package shootclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	// firstAnswer limits a request to a shoot that has not answered the last one, or none yet. It
	// doubles with each request that gets no answer, up to requestTimeout.
	firstAnswer = time.Second
	// requestTimeout limits the answer of a shoot that has answered before, and the time to read it.
	// It is shorter than an attempt of the controller.
	requestTimeout = 8 * time.Second
)

// noAnswer is the error of a request that a shoot did not answer in time.
type noAnswer struct{ after time.Duration }

func (e *noAnswer) Error() string {
	return fmt.Sprintf("no answer for %s", e.after.Round(time.Second/10))
}

// Timeout makes the url.Error that contains e a timeout.
func (e *noAnswer) Timeout() bool { return true }

// NoAnswer returns whether a shoot did not answer a request in time, so that an immediate retry
// would block as long again. A refused connection does not count.
func NoAnswer(err error) bool {
	return errors.As(err, new(*noAnswer)) || apierrors.IsTimeout(err)
}

// answers is how a shoot answered so far.
type answers struct {
	mu       sync.Mutex
	answered bool // the last request
	missed   int  // requests without an answer since the last answer
}

// answersOf returns the answers of the shoot, also to clients that were dropped.
func (c *Clients) answersOf(namespace string) *answers {
	value, _ := c.answers.Get(namespace)
	if known, ok := value.(*answers); ok {
		return known
	}
	shoot := &answers{}
	c.answers.Add(namespace, shoot)
	return shoot
}

// limit returns how long the next request may take.
func (a *answers) limit() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.answered {
		return requestTimeout
	}
	limit := firstAnswer
	for range a.missed {
		limit = min(2*limit, requestTimeout)
	}
	return limit
}

func (a *answers) record(answered bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case answered:
		a.missed = 0
	case !a.answered && a.missed < 8:
		a.missed++
	}
	a.answered = answered
}

// transport limits the requests to a shoot.
type transport struct {
	next  http.RoundTripper
	shoot *answers
}

// RoundTrip fails with noAnswer if the shoot does not answer within its limit, or before the
// deadline of the request.
func (t *transport) RoundTrip(request *http.Request) (*http.Response, error) {
	started := time.Now()
	ctx, cancel := context.WithCancelCause(request.Context())
	tooLate := func() { cancel(errTooLate) }
	explain := func(err error) error {
		if cause := context.Cause(ctx); errors.Is(cause, errTooLate) || errors.Is(cause, context.DeadlineExceeded) {
			return &noAnswer{time.Since(started)}
		}
		return err
	}
	timer := time.AfterFunc(t.shoot.limit(), tooLate)
	response, err := t.next.RoundTrip(request.WithContext(ctx))
	timer.Stop()
	if err != nil {
		err = explain(err)
		cancel(nil)
		if NoAnswer(err) {
			t.shoot.record(false)
		}
		return nil, err
	}
	t.shoot.record(true)
	timer = time.AfterFunc(requestTimeout, tooLate)
	response.Body = &body{ReadCloser: response.Body, explain: explain, end: func() { timer.Stop(); cancel(nil) }}
	return response, nil
}

// errTooLate ends a request that takes too long.
var errTooLate = errors.New("too late")

// WrappedRoundTripper lets client-go find the connections.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.next }

// body is the body of an answer.
type body struct {
	io.ReadCloser
	explain func(error) error
	end     func()
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = b.explain(err)
	}
	return n, err
}

func (b *body) Close() error {
	defer b.end()
	return b.ReadCloser.Close()
}
