package registry

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/distribution/distribution/v3/configuration"
)

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func answer(status int, challenges ...string) roundTripper {
	return func(r *http.Request) (*http.Response, error) {
		return &http.Response{
			StatusCode: status, Status: http.StatusText(status), Header: http.Header{"Www-Authenticate": challenges},
			Body: io.NopCloser(strings.NewReader("body")), Request: r,
		}, nil
	}
}

func hang(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

func refuse(*http.Request) (*http.Response, error) { return nil, errors.New("connection refused") }

func pingOf(t *testing.T, next http.RoundTripper) *ping {
	t.Helper()
	p, err := newPing(&configuration.Configuration{Proxy: configuration.Proxy{RemoteURL: "https://upstream.test"}}, next)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPing(t *testing.T) {
	for name, test := range map[string]struct {
		next       roundTripper
		status     int
		unanswered bool
		took       time.Duration
	}{
		"asks for nothing":  {next: answer(http.StatusOK), status: http.StatusOK},
		"asks for a token":  {next: answer(http.StatusUnauthorized, "Bearer realm=x"), status: http.StatusUnauthorized},
		"is refused":        {next: refuse, status: http.StatusOK, unanswered: true},
		"hangs":             {next: hang, status: http.StatusOK, unanswered: true, took: pingTimeout},
		"is out of order":   {next: answer(http.StatusServiceUnavailable), status: http.StatusOK, unanswered: true},
		"is asked too much": {next: answer(http.StatusTooManyRequests), status: http.StatusOK, unanswered: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, start := pingOf(t, test.next), time.Now()
				request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://upstream.test/v2/", http.NoBody)
				if err != nil {
					t.Fatal(err)
				}
				response, err := (&http.Client{Transport: p}).Do(request)
				if err != nil {
					t.Fatal(err)
				}
				_ = response.Body.Close()
				if response.StatusCode != test.status || p.unanswered.Load() != test.unanswered {
					t.Errorf("status %d, unanswered %t", response.StatusCode, p.unanswered.Load())
				}
				if wantsToken(response.Header) != (test.status == http.StatusUnauthorized) {
					t.Errorf("header %v", response.Header)
				}
				if took := time.Since(start); took != test.took {
					t.Errorf("it took %s, want %s", took, test.took)
				}
			})
		})
	}
}

// What a node asks for gets the upstream's own answer, and its own error.
func TestPingLeavesOtherRequestsAlone(t *testing.T) {
	p := pingOf(t, roundTripper(refuse))
	for _, request := range []struct{ method, url string }{
		{http.MethodHead, "https://upstream.test/v2/"}, {http.MethodGet, "https://upstream.test/v2/app/manifests/latest"},
	} {
		r, err := http.NewRequestWithContext(t.Context(), request.method, request.url, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := p.RoundTrip(r)
		if err == nil {
			_ = response.Body.Close()
		}
		if err == nil || p.unanswered.Load() {
			t.Errorf("%s %s was answered in place of the upstream", request.method, request.url)
		}
	}
}

func TestAwaitTokens(t *testing.T) {
	for name, test := range map[string]struct {
		challenge string
		wanted    bool
	}{
		"tokens":          {`bearer realm="https://upstream.test/token"`, true},
		"basic":           {`Basic realm="private"`, false},
		"nothing at all":  {"", false},
		"a name like it":  {"BearerX realm=x", false},
		"without a realm": {"Bearer", true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				asked := 0
				tokens := pingOf(t, roundTripper(func(r *http.Request) (*http.Response, error) {
					if asked++; asked < 3 {
						return refuse(r)
					}
					return answer(http.StatusUnauthorized, test.challenge)(r)
				})).awaitTokens(ctx)
				<-time.After(10 * askInterval)
				synctest.Wait()
				wanted := false
				select {
				case <-tokens:
					wanted = true
				default:
				}
				if wanted != test.wanted || asked != 3 {
					t.Errorf("wanted %t, asked %d times", wanted, asked)
				}
			})
		})
	}
}
