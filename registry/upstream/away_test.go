package upstream

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// pipes is a listener in memory, so that the whole test is in its bubble.
type pipes chan net.Conn

// Accept implements net.Listener.
func (p pipes) Accept() (net.Conn, error) {
	if conn, ok := <-p; ok {
		return conn, nil
	}
	return nil, net.ErrClosed
}

// Close implements net.Listener.
func (p pipes) Close() error { return nil }

// Addr implements net.Listener.
func (p pipes) Addr() net.Addr { return &net.UnixAddr{} }

// dial is a Dial.
func (p pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case p <- there:
		return here, nil
	case <-ctx.Done():
		return nil, errors.Join(ctx.Err(), here.Close(), there.Close())
	}
}

// newPipedClient returns a client of an upstream in the test's bubble.
func newPipedClient(t *testing.T, handler http.HandlerFunc) *Client {
	t.Helper()
	connections := make(pipes)
	server := &http.Server{Handler: handler} //nolint:gosec // of a test
	go func() { _ = server.Serve(connections) }()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(func() {
		cancel()
		close(connections)
		_ = server.Close()
	})
	return New(ctx, Options{URL: &url.URL{Scheme: "http", Host: "registry.example"}, Dial: connections.dial})
}

// TestRootAnswers checks which answers of the root mean that the upstream is away. 404 and a demand
// for a token do not.
func TestRootAnswers(t *testing.T) {
	for status, away := range map[int]bool{
		200: false, 401: false, 403: false, 404: false, 405: false, 408: true, 429: true, 500: true, 502: true, 503: true, 304: true,
	} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var roots atomic.Int64
				c := newPipedClient(t, func(w http.ResponseWriter, r *http.Request) {
					if r.URL.Path == "/v2/" {
						roots.Add(1)
						w.WriteHeader(status)
						return
					}
					w.WriteHeader(http.StatusInternalServerError)
				})
				if response, err := c.Do(t.Context(), http.MethodGet, "library/app", "manifests/v1", nil); err == nil {
					t.Error(response.Status, response.Body.Close())
				}
				synctest.Wait()
				if roots.Load() != 1 {
					t.Errorf("the root was asked %d times", roots.Load())
				}
				if err := c.Away("library/app", "manifests/v1"); err == nil {
					t.Error("the failed object is not remembered")
				}
				if err := c.Away("library/other", "manifests/v1"); (err != nil) != away {
					t.Errorf("another object: %v", err)
				}
			})
		})
	}
}

// TestSilentUpstream checks that a silent upstream is away once its root is also silent, that only
// the root is requested then, and that it is no longer away when it answers again.
func TestSilentUpstream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var silent atomic.Bool
		var objects atomic.Int64
		silent.Store(true)
		c := newPipedClient(t, func(_ http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/v2/" {
				objects.Add(1)
			}
			if silent.Load() {
				<-r.Context().Done()
			}
		})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() {
			if response, err := c.Do(ctx, http.MethodGet, "library/app", "manifests/v1", nil); err == nil {
				t.Error(response.Status, response.Body.Close())
			}
		}()
		<-time.After(Patience)
		if err := c.Away("library/app", "manifests/v1"); !errors.Is(err, ErrLate) {
			t.Errorf("the object after %s: %v", Patience, err)
		}
		<-time.After(Patience - beforePatience - 1)
		if err := c.Away("library/other", "manifests/v1"); err != nil {
			t.Errorf("another object, while the root may answer: %v", err)
		}
		<-time.After(1)
		synctest.Wait()
		before := objects.Load()
		response, err := c.Do(ctx, http.MethodGet, "library/other", "manifests/v1", nil)
		if err == nil {
			_ = response.Body.Close()
		}
		if !errors.Is(err, ErrLate) {
			t.Errorf("another object, while the root is silent: %v", err)
		}
		if objects.Load() != before {
			t.Error("an upstream that is away was asked for an object")
		}
		silent.Store(false)
		<-time.After(firstPause)
		synctest.Wait()
		response, err = c.Do(t.Context(), http.MethodGet, "library/other", "manifests/v1", nil)
		if err != nil {
			t.Errorf("another object, after the root has answered: %v", err)
		} else {
			_ = response.Body.Close()
		}
	})
}
