package shootclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

const (
	// firstAnswer is the shortest limit for an answer.
	firstAnswer = time.Second
	// requestTimeout limits the wait for a shoot with a fresh answer, and the time to read an answer.
	// It is shorter than an attempt of the controller.
	requestTimeout = 8 * time.Second
	// fresh is how long after an answer a shoot is expected to answer.
	fresh = 10 * time.Second
)

// NoAnswerError is the error of a request that a shoot did not answer in time, so that an immediate
// retry would block as long again. A refused connection is another error.
type NoAnswerError struct{ After time.Duration }

func (e *NoAnswerError) Error() string {
	return fmt.Sprintf("no answer for %s", e.After.Round(time.Second/10))
}

// Timeout makes the url.Error that contains e a timeout.
func (e *NoAnswerError) Timeout() bool { return true }

// IsNoAnswer reports whether the error contains a NoAnswerError.
func IsNoAnswer(err error) bool { return errors.As(err, new(*NoAnswerError)) }

// answers records how fast a shoot has answered so far.
type answers struct {
	mu   sync.Mutex
	last time.Time // the time of the last answer, zero if the last request got none
	// first limits the next request if there is no fresh answer. It is twice the duration of the last
	// such request, or twice the last limit if there was no answer.
	first time.Duration
}

// answersOf returns the answers of the shoot, including those to dropped clients.
func (c *Clients) answersOf(namespace string) *answers {
	shoot, known := c.answers.Get(namespace)
	if !known {
		shoot = &answers{}
		c.answers.Add(namespace, shoot)
	}
	return shoot
}

// limit returns how long the next request may take.
func (a *answers) limit() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	if time.Since(a.last) < fresh {
		return requestTimeout
	}
	return min(max(a.first, firstAnswer), requestTimeout)
}

func (a *answers) record(answered bool, took time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if time.Since(a.last) >= fresh {
		a.first = 2 * took
	}
	if a.last = (time.Time{}); answered {
		a.last = time.Now()
	}
}

// transport limits the requests to a shoot.
type transport struct {
	next  http.RoundTripper
	shoot *answers
}

// RoundTrip fails with NoAnswerError if the shoot does not answer within its limit, or before the
// deadline of the request.
func (t *transport) RoundTrip(request *http.Request) (*http.Response, error) {
	started := time.Now()
	ctx, cancel := context.WithCancelCause(request.Context())
	timer := time.AfterFunc(t.shoot.limit(), func() { cancel(context.DeadlineExceeded) })
	end := func() { timer.Stop(); cancel(nil) }
	explain := func(err error) error {
		if errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
			return &NoAnswerError{time.Since(started)}
		}
		return err
	}
	response, err := t.next.RoundTrip(request.WithContext(ctx))
	if err != nil {
		defer end()
		if err = explain(err); IsNoAnswer(err) {
			t.shoot.record(false, time.Since(started))
		}
		return nil, err
	}
	t.shoot.record(true, time.Since(started))
	timer.Reset(requestTimeout)
	response.Body = &body{response.Body, explain, end}
	return response, nil
}

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
