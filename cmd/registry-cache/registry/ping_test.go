package registry

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"
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

func pingerOf(t *testing.T, next http.RoundTripper) *pinger {
	t.Helper()
	remote, err := url.Parse("https://upstream.test")
	if err != nil {
		t.Fatal(err)
	}
	return &pinger{next: next, remote: remote}
}

func request(t *testing.T, method, url string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// send sends distribution's ping and returns the answer; false after an error.
func send(t *testing.T, p *pinger) (pingAnswer, bool) {
	t.Helper()
	response, err := (&http.Client{Transport: p}).Do(request(t, http.MethodGet, "https://upstream.test/v2/"))
	if err != nil {
		return pingAnswer{}, false
	}
	_ = response.Body.Close()
	return pingAnswer{response.StatusCode, response.Header}, true
}

func TestPingAtTheStart(t *testing.T) {
	for name, test := range map[string]struct {
		next    roundTripper
		status  int
		unknown bool
		took    time.Duration
	}{
		"asks for nothing":  {next: answer(http.StatusOK), status: http.StatusOK},
		"asks for a token":  {next: answer(http.StatusUnauthorized, "Bearer realm=x"), status: http.StatusUnauthorized},
		"is refused":        {next: refuse, status: http.StatusOK, unknown: true},
		"hangs":             {next: hang, status: http.StatusOK, unknown: true, took: pingTimeout},
		"is out of order":   {next: answer(http.StatusServiceUnavailable), status: http.StatusServiceUnavailable, unknown: true},
		"is asked too much": {next: answer(http.StatusTooManyRequests), status: http.StatusTooManyRequests, unknown: true},
		"is not there yet":  {next: answer(http.StatusNotFound), status: http.StatusNotFound, unknown: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, start := pingerOf(t, test.next), time.Now()
				answer, answered := send(t, p)
				if !answered || answer.status != test.status {
					t.Fatalf("answered %t by %d", answered, answer.status)
				}
				if answer.wantsToken() != (test.status == http.StatusUnauthorized) {
					t.Errorf("header %v", answer.header)
				}
				if unknown := p.start(); unknown != test.unknown {
					t.Errorf("unknown %t", unknown)
				}
				if took := time.Since(start); took != test.took {
					t.Errorf("it took %s, want %s", took, test.took)
				}
			})
		})
	}
}

// After the start an upstream that does not answer is an error, for which a queue of pulls waits once.
func TestPingsOfPulls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, next := 0, roundTripper(hang)
		p := pingerOf(t, roundTripper(func(r *http.Request) (*http.Response, error) {
			asked++
			return next(r)
		}))
		send(t, p)
		p.start()
		<-time.After(failureLasts)
		start := time.Now()
		for range 10 {
			if answer, answered := send(t, p); answered {
				t.Fatalf("answered by %d in place of the upstream", answer.status)
			}
		}
		if took := time.Since(start); took != pingTimeout || asked != 2 {
			t.Errorf("ten pulls waited %s for %d pings, want %s for one after the start", took, asked-1, pingTimeout)
		}
		next = answer(http.StatusOK)
		<-time.After(failureLasts)
		for range 2 {
			if _, answered := send(t, p); !answered {
				t.Error("the upstream answers again, and that is not noticed")
			}
		}
	})
}

// What is not a ping of the upstream gets its own answer, and its own error, also at the start.
func TestOtherRequestsAreLeftAlone(t *testing.T) {
	p := pingerOf(t, roundTripper(refuse))
	for _, r := range []*http.Request{
		request(t, http.MethodHead, "https://upstream.test/v2/"), request(t, http.MethodGet, "https://upstream.test/v2/app/manifests/latest"),
		request(t, http.MethodGet, "https://tokens.test/v2/"),
	} {
		response, err := p.RoundTrip(r)
		if err == nil {
			_ = response.Body.Close()
			t.Errorf("%s %s was answered in place of the upstream", r.Method, r.URL)
		}
	}
}

func TestAwaitTokens(t *testing.T) {
	for name, test := range map[string]struct {
		status    int
		challenge string
		wanted    bool
	}{
		"tokens":                  {http.StatusUnauthorized, `bearer realm="https://upstream.test/token"`, true},
		"basic":                   {http.StatusUnauthorized, `Basic realm="private"`, false},
		"nothing at all":          {http.StatusOK, "", false},
		"tokens are not required": {http.StatusOK, `Bearer realm="https://upstream.test/token"`, false},
		"a name like it":          {http.StatusUnauthorized, "BearerX realm=x", false},
		"from nowhere":            {http.StatusUnauthorized, "Bearer", false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				// Neither is an answer of a registry.
				before := []roundTripper{refuse, hang, answer(http.StatusBadGateway), answer(http.StatusNotFound, "Bearer realm=x")}
				asked := 0
				tokens := pingerOf(t, roundTripper(func(r *http.Request) (*http.Response, error) {
					if asked++; asked <= len(before) {
						return before[asked-1](r)
					}
					return answer(test.status, test.challenge)(r)
				})).awaitTokens(ctx)
				<-time.After(time.Hour)
				synctest.Wait()
				wanted := false
				select {
				case <-tokens:
					wanted = true
				default:
				}
				if wanted != test.wanted || asked != len(before)+1 {
					t.Errorf("wanted %t, asked %d times", wanted, asked)
				}
			})
		})
	}
}

// An upstream that is out for an hour is asked about once a minute.
func TestAwaitTokensIsPatient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		asked := 0
		pingerOf(t, roundTripper(func(r *http.Request) (*http.Response, error) {
			asked++
			return refuse(r)
		})).awaitTokens(ctx)
		<-time.After(time.Hour)
		cancel()
		synctest.Wait()
		if asked < 40 || asked > 130 {
			t.Errorf("asked %d times in an hour", asked)
		}
	})
}
