package ecr

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// get returns the password, or the error.
func get(t *testing.T, s *Source) string {
	t.Helper()
	username, password, err := s.Credentials(t.Context(), "")
	if err != nil {
		return err.Error()
	}
	if username != "AWS" {
		t.Errorf("the user name is %q", username)
	}
	return password
}

// expect checks the password or a part of the error, and the number of requests to AWS since its
// last call.
func expect(t *testing.T, c *cloud, s *Source, when, want string, requests int) {
	t.Helper()
	got := get(t, s)
	synctest.Wait()
	if asked := c.asked(); !strings.Contains(got, want) || len(asked) != requests {
		t.Errorf("%s: got %s after the requests %q, want %s after %d", when, got, asked, want, requests)
	}
}

func TestTokenIsRenewedInTheBackground(t *testing.T) {
	for _, test := range []struct{ life, margin time.Duration }{{12 * time.Hour, 5 * time.Minute}, {time.Minute, 6 * time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			c := newCloud(t)
			c.life = test.life
			s := c.source(nil)
			expect(t, c, s, "at first", "token-1", 1)
			time.Sleep(test.life - test.margin - time.Second) //nolint:forbidigo // virtual time
			expect(t, c, s, "before it is due", "token-1", 0)
			time.Sleep(time.Second) //nolint:forbidigo // virtual time
			expect(t, c, s, "when it is due", "token-1", 1)
			expect(t, c, s, "after that", "token-2", 0)
			time.Sleep(test.life) //nolint:forbidigo // virtual time
			expect(t, c, s, "when it has expired", "token-3", 1)
		})
	}
}

func TestOneRequestAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(t)
		s := c.source(nil)
		var group sync.WaitGroup
		for range 50 {
			group.Go(func() {
				if got := get(t, s); got != "token-1" {
					t.Error(got)
				}
			})
		}
		group.Wait()
		s.refresh(t.Context()) // as in a call that has just seen no token
		if asked := c.asked(); len(asked) != 1 {
			t.Errorf("AWS was asked %q", asked)
		}
	})
}

func TestClientThatLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(t)
		s := c.source(nil)
		ctx, cancel := context.WithCancelCause(t.Context())
		gone := errors.New("gone")
		cancel(gone)
		if _, _, err := s.Credentials(ctx, ""); !errors.Is(err, gone) {
			t.Errorf("the error is %v", err)
		}
		synctest.Wait()
		expect(t, c, s, "the next client", "token-1", 1)
	})
}

func TestClockOfTheMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(t)
		c.life, c.ahead = time.Minute, time.Hour
		s := c.source(nil)
		expect(t, c, s, "with a clock that is an hour late", "RequestTimeTooSkewed", 0)
		time.Sleep(2 * time.Second) //nolint:forbidigo // virtual time
		expect(t, c, s, "when its error is known", "token-1", 1)
		time.Sleep(time.Minute) //nolint:forbidigo // virtual time
		expect(t, c, s, "when the token has expired", "token-2", 1)
	})
}

// requestTimes makes AWS fail while clients ask ten times a second, and returns the times of its
// requests in seconds.
func requestTimes(t *testing.T, c *cloud, s *Source, during time.Duration) (at []int) {
	t.Helper()
	start := time.Now()
	for time.Since(start) < during {
		get(t, s)
		synctest.Wait()
		for range c.asked() {
			at = append(at, int(time.Since(start).Round(time.Second).Seconds()))
		}
		time.Sleep(100 * time.Millisecond) //nolint:forbidigo // virtual time
	}
	return at
}

func TestPauses(t *testing.T) {
	status := func(status int, code, retryAfter string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/x-amz-json-1.1")
			if retryAfter != "" {
				w.Header().Set("Retry-After", retryAfter)
			}
			w.WriteHeader(status)
			fmt.Fprintf(w, `{"__type":%q}`, code)
		}
	}
	for name, test := range map[string]struct {
		broken http.HandlerFunc
		want   []int
	}{
		"error":                {status(500, "ServerException", ""), []int{0, 1, 3, 7, 15, 31, 63, 123, 183}},
		"refused":              {status(400, "AccessDeniedException", ""), []int{0, 1, 3, 7, 15, 31, 63, 123, 183}},
		"throttled":            {status(400, "ThrottlingException", ""), []int{0, 10, 20, 30, 40, 56, 88, 148}},
		"Retry-After":          {status(503, "ServerException", "70"), []int{0, 70, 140}},
		"Retry-After for ever": {status(503, "ServerException", "9999999999"), []int{0}},
		"no Retry-After":       {status(503, "ServerException", "880.092µs"), []int{0, 1, 3, 7, 15, 31, 63, 123, 183}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCloud(t)
				c.broken = test.broken
				s := c.source(nil)
				if got := requestTimes(t, c, s, 200*time.Second); !slices.Equal(got, test.want) {
					t.Errorf("AWS was asked at %v, want %v", got, test.want)
				}
				c.set(func() { c.broken = nil })
				time.Sleep(mostRetryAfter) //nolint:forbidigo // virtual time
				expect(t, c, s, "when AWS answers", "token-1", 1)
			})
		})
	}
}

// TestTokenOutlivesAnOutage: if AWS does not renew a token, it is used until it expires.
func TestTokenOutlivesAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(t)
		s := c.source(nil)
		expect(t, c, s, "at first", "token-1", 1)
		c.set(func() {
			c.broken = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }
		})
		time.Sleep(12*time.Hour - time.Second) //nolint:forbidigo // virtual time
		expect(t, c, s, "a second before its end", "token-1", 1)
		time.Sleep(time.Second) //nolint:forbidigo // virtual time
		expect(t, c, s, "at its end", "get a token from Amazon ECR in eu-central-1", 1)
	})
}

func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(t)
		c.broken = func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
		start := time.Now()
		expect(t, c, c.source(nil), "of AWS", "AWS does not answer GetAuthorizationToken within 10s", 1)
		if took := time.Since(start); took != timeout {
			t.Errorf("it took %s", took)
		}
	})
}

func TestRefusedToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(t)
		s := c.source(nil)
		refused := func(password, want string) {
			t.Helper()
			if _, got, err := s.Credentials(t.Context(), password); got != want || err != nil {
				t.Errorf("after %q was refused: %q, %v", password, got, err)
			}
		}
		expect(t, c, s, "at first", "token-1", 1)
		refused("another", "token-1")
		expect(t, c, s, "after another was refused", "token-1", 0)
		refused("token-1", "token-1")
		expect(t, c, s, "at once", "token-1", 0)
		time.Sleep(refusedPause) //nolint:forbidigo // virtual time
		expect(t, c, s, "ten seconds later", "token-2", 1)
		time.Sleep(time.Hour) //nolint:forbidigo // virtual time
		refused("token-2", "token-3")
		expect(t, c, s, "an hour later", "token-3", 1)
	})
}

func TestRole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(t)
		c.signer, c.life = assumed, time.Hour
		s := c.source(func(o *Options) { o.RoleARN = role })
		for range 2 {
			if got := get(t, s); !strings.HasPrefix(got, "token-") {
				t.Error(got)
			}
			if asked := c.asked(); !slices.Equal(asked, []string{"AssumeRole", "GetAuthorizationToken"}) {
				t.Errorf("AWS was asked %q", asked)
			}
			time.Sleep(time.Hour) //nolint:forbidigo // virtual time
		}
	})
}

func TestSessionToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(t)
		c.signer.SessionToken = session
		expect(t, c, c.source(func(o *Options) { o.SessionToken = session }), "a session", "token-1", 1)
	})
}

// TestErrorsHaveNoSecret: answers of AWS are neither returned nor logged.
func TestErrorsHaveNoSecret(t *testing.T) {
	var log bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	defer slog.SetDefault(before)
	answer := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/x-amz-json-1.1")
			w.Header().Set("Location", "http://elsewhere.test/?"+session)
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}
	}
	for name, test := range map[string]struct {
		broken http.HandlerFunc
		want   string
	}{
		"no JSON":        {answer(200, session), "the answer contains no valid token"},
		"no token":       {answer(200, `{}`), "the answer contains no valid token"},
		"no base64":      {answer(200, `{"authorizationData":[{"authorizationToken":"`+session+`:","expiresAt":1e9}]}`), "the answer contains no valid token"},
		"no password":    {answer(200, `{"authorizationData":[{"authorizationToken":"QVdTOg==","expiresAt":1e9}]}`), "the answer contains no valid token"},
		"no end":         {answer(200, `{"authorizationData":[{"authorizationToken":"QVdTOng="}]}`), "the answer contains no valid token"},
		"expired":        {answer(200, `{"authorizationData":[{"authorizationToken":"QVdTOng=","expiresAt":900000000}]}`), "the answer contains no valid token"},
		"too much":       {answer(200, `{"x":"`+strings.Repeat("x", 1<<20)+`","authorizationData":[{"authorizationToken":"QVdTOng=","expiresAt":1e9}]}`), "the answer contains no valid token"},
		"no type":        {answer(500, session), "get a token from Amazon ECR in eu-central-1: "},
		"secret as type": {answer(400, `{"__type":"`+session+`","message":"`+session+`"}`), "get a token from Amazon ECR in eu-central-1: "},
		"redirect":       {answer(303, session), "get a token from Amazon ECR in eu-central-1: "},
		"cut":            {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "GetAuthorizationToken: EOF"},
		"no HTTP": {func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = conn.Write([]byte("HTTP/1.1 " + session + "\r\n\r\n"))
			_ = conn.Close()
		}, "GetAuthorizationToken: its answer cannot be read"},
		"other signature": {nil, "AWS answers GetAuthorizationToken with InvalidSignatureException"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCloud(t)
				c.broken, c.signer = test.broken, assumed
				_, _, err := c.source(nil).Credentials(t.Context(), "")
				if err == nil || !strings.Contains(err.Error(), test.want) {
					t.Fatalf("the error is %v", err)
				}
				if asked := c.asked(); len(asked) > 1 {
					t.Errorf("AWS was asked %q", asked)
				}
				for _, secret := range []string{session, user.SecretAccessKey, user.AccessKeyID} {
					if strings.Contains(err.Error()+log.String(), secret) {
						t.Errorf("%s is in the error %v or in the log %s", secret, err, &log)
					}
				}
			})
		})
	}
	if !strings.Contains(log.String(), "InvalidSignatureException") {
		t.Errorf("the log does not contain the reason: %s", &log)
	}
}

// TestEndpoints: requests go to the API of the registry's region and partition.
func TestEndpoints(t *testing.T) {
	for host, test := range map[string]struct{ region, want string }{
		host:          {"", "api.ecr.eu-central-1.amazonaws.com:443"},
		host + ":443": {"", "api.ecr.eu-central-1.amazonaws.com:443"},
		host + ".":    {"", ""},
		"123456789012.dkr.ecr.cn-north-1.amazonaws.com.cn":  {"", "api.ecr.cn-north-1.amazonaws.com.cn:443"},
		"123456789012.dkr.ecr.eusc-de-east-1.amazonaws.eu":  {"", "api.ecr.eusc-de-east-1.amazonaws.eu:443"},
		"123456789012.dkr.ecr-fips.us-east-1.amazonaws.com": {"", "api.ecr-fips.us-east-1.amazonaws.com:443"},
		"public.ecr.aws":       {"", ""},
		"registry.example.org": {"eu-west-1", "api.ecr.eu-west-1.amazonaws.com:443"},
		"123456789012.dkr.ecr.eu-central-1.amazonaws.com.evil": {"", ""},
	} {
		t.Run(host, func(t *testing.T) {
			asked := ""
			s, err := New(Options{Host: host, Region: test.region, AccessKeyID: "a", SecretAccessKey: "b",
				dial: func(_ context.Context, _, address string) (net.Conn, error) {
					asked = address
					return nil, errors.New("no route")
				}})
			if err == nil {
				_, _, err = s.Credentials(t.Context(), "")
			}
			if asked != test.want || err == nil {
				t.Errorf("the API is %q, want %q; the error is %v", asked, test.want, err)
			}
		})
	}
}
