package registry_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gardener-extensions/registry-cache/registry"
)

// tokens is a token server.
type tokens struct {
	mu      sync.Mutex
	grants  map[string]any                                         // its answer, in addition to the token
	refuses func(w http.ResponseWriter)                            // the registry's refusal of an old token
	answers func(w http.ResponseWriter, r *http.Request) (ok bool) // answers instead of a token, may be nil
	seen    []string                                               // the secrets in requests
	granted int
	expired int // how many tokens have expired
	refused int // requests with an expired token
}

// ServeHTTP implements http.Handler.
func (s *tokens) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	user, password, _ := r.BasicAuth()
	s.mu.Lock()
	s.seen = append(s.seen, strings.Join([]string{user, password, r.URL.RawQuery, string(body)}, " "))
	answers := s.answers
	s.mu.Unlock()
	if answers != nil && answers(w, r) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.granted++
	granted := map[string]any{"token": fmt.Sprintf("token-%d", s.granted)}
	for key, value := range s.grants {
		granted[key] = value
	}
	_ = json.NewEncoder(w).Encode(granted)
}

// asked returns the number of token requests.
func (s *tokens) asked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.seen)
}

// got reports whether a request contained the text.
func (s *tokens) got(text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Contains(strings.Join(s.seen, "\n"), text)
}

// expire makes all tokens expire.
func (s *tokens) expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expired = s.granted
}

// answer replaces the token server's answer.
func (s *tokens) answer(do func(w http.ResponseWriter, r *http.Request) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers = do
}

// wantTokens makes an upstream require tokens from the realm.
func (o *origin) wantTokens(s *tokens, realm string) {
	challenge := func(w http.ResponseWriter) {
		w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm=%q,service="registry"`, realm))
		refuse(w, http.StatusUnauthorized, "UNAUTHORIZED", "authentication required")
	}
	o.when("/v2/", func(w http.ResponseWriter, r *http.Request) bool {
		var n int
		s.mu.Lock()
		defer s.mu.Unlock()
		got, _ := fmt.Sscanf(r.Header.Get("Authorization"), "Bearer token-%d", &n)
		switch {
		case got == 0:
			challenge(w)
		case n > s.expired:
			return false
		case s.refuses == nil:
			s.refused++
			challenge(w)
		default:
			s.refused++
			s.refuses(w)
		}
		return true
	})
}

// withTokens makes the upstream its own token server.
func (o *origin) withTokens(s *tokens) *tokens {
	o.wantTokens(s, o.URL+"/token")
	o.when(" /token", func(w http.ResponseWriter, r *http.Request) bool { s.ServeHTTP(w, r); return true })
	return s
}

// TestExpiredToken: a refused token is replaced once, whatever the status.
func TestExpiredToken(t *testing.T) {
	for name, refuses := range map[string]func(http.ResponseWriter){
		"400": func(w http.ResponseWriter) {
			refuse(w, http.StatusBadRequest, "DENIED", "Your Authorization Token is invalid.")
		},
		"403": func(w http.ResponseWriter) {
			refuse(w, http.StatusForbidden, "DENIED", "Your Authorization Token has expired.")
		},
	} {
		t.Run(name, func(t *testing.T) {
			registry.Virtually(t, func(t *testing.T) {
				o := newOrigin(t)
				s := o.withTokens(&tokens{refuses: refuses})
				o.push("v1", 1000)
				pushed := o.push("v2", 1000)
				p := start(t, o.URL, t.TempDir())
				if a := get(t, p.tag("v1")); a.status != 200 {
					t.Fatalf("with a new token: %s", a)
				}
				s.expire()
				if a := get(t, p.tag("v2")); a.status != 200 || a.digest() != pushed.manifest.String() {
					t.Errorf("a tag after the token has expired: %s", a)
				}
				s.expire()
				if a := get(t, p.blob(pushed.layer.String())); !a.is(pushed.content) {
					t.Errorf("a blob after the token has expired: %s", a)
				}
				s.expire()
				moved := o.push("v1", 1000)
				await(t, "the tag is the new one", func() bool { // the last answer is reused for a second
					a := get(t, p.tag("v1"))
					if a.stale() {
						t.Fatalf("a stored tag after the token has expired is stale: %s", a)
					}
					return a.digest() == moved.manifest.String()
				})
				if asked := s.asked(); asked != 4 {
					t.Errorf("%d tokens were requested, want 4", asked)
				}
			})
		})
	}
}

// TestRenewedToken: a token is not used after its stated lifetime (expires_in, issued_at).
func TestRenewedToken(t *testing.T) {
	registry.Virtually(t, func(t *testing.T) {
		o := newOrigin(t)
		s := o.withTokens(&tokens{grants: map[string]any{
			"expires_in": 300, "issued_at": time.Now().Add(-10 * time.Minute).Format(time.RFC3339),
		}})
		o.push("v1", 1000)
		o.push("v2", 1000)
		p := start(t, o.URL, t.TempDir())
		for _, tag := range []string{"v1", "v2"} {
			if a := get(t, p.tag(tag)); a.status != 200 {
				t.Fatalf("%s: %s", tag, a)
			}
			s.expire()
			<-time.After(time.Second)
		}
		if s.refused != 0 {
			t.Errorf("the upstream received an expired token %d times", s.refused)
		}
	})
}

// TestWaitingTokenServer: a token server's Retry-After is respected for all repositories.
func TestWaitingTokenServer(t *testing.T) {
	registry.Virtually(t, func(t *testing.T) {
		o := newOrigin(t)
		s := o.withTokens(&tokens{})
		s.answer(status(http.StatusTooManyRequests, "Retry-After", "3"))
		p := start(t, o.URL, t.TempDir())
		begin := time.Now()
		for i := range 20 {
			a := get(t, fmt.Sprintf("%s/v2/library/app%d/manifests/v1", p.url, i))
			if a.status < 500 || a.header.Get("Retry-After") == "" {
				t.Errorf("repository %d: %s, Retry-After %q", i, a, a.header.Get("Retry-After"))
			}
		}
		within(t, time.Until(begin.Add(2500*time.Millisecond)), func() bool { return s.asked() > 1 })
		if asked := s.asked(); asked != 1 {
			t.Errorf("%d token requests of 20 repositories within Retry-After, want 1", asked)
		}
		s.answer(nil)
		pushed := o.push("v1", 1000)
		await(t, "a tag is served after Retry-After", func() bool { return get(t, p.tag("v1")).digest() == pushed.manifest.String() })
	})
}

// TestRefusingTokenServer: repositories without a token cause no requests after the last request of
// a client.
func TestRefusingTokenServer(t *testing.T) {
	registry.Virtually(t, func(t *testing.T) {
		o := newOrigin(t)
		s := o.withTokens(&tokens{})
		s.answer(status(http.StatusBadRequest))
		p := start(t, o.URL, t.TempDir())
		for i := range 30 {
			if a := get(t, fmt.Sprintf("%s/v2/typo/app%d/manifests/v1", p.url, i)); a.status == 200 || a.status == 0 {
				t.Errorf("repository %d: %s", i, a)
			}
		}
		// Wait until the requests of the last clients have ended, and longer than the pause between
		// probes.
		within(t, 2500*time.Millisecond, func() bool { return false })
		before, tokensBefore := o.requests("/v2/typo/"), s.asked()
		within(t, 4*time.Second, func() bool { return o.requests("/v2/typo/") > before+3 })
		if after, tokens := o.requests("/v2/typo/")-before, s.asked()-tokensBefore; after > 0 || tokens > 0 {
			t.Errorf("without a client there were %d requests to the repositories and %d for tokens", after, tokens)
		}
	})
}

// TestSecretOfTokenServer: nothing of a token server's answer reaches a client or the log, even if
// it is not HTTP.
func TestSecretOfTokenServer(t *testing.T) {
	const ok = "HTTP/1.1 200 OK\r\n"
	for name, answer := range map[string]string{
		"no token":          ok + "X-Secret: TOP-SECRET-A\r\n\r\n" + `{"refresh_token":"TOP-SECRET-A"}`,
		"no JSON":           ok + "\r\nTOP-SECRET-B",
		"an error":          "HTTP/1.1 500 TOP-SECRET-C\r\n\r\n" + `{"details":"TOP-SECRET-C"}`,
		"a refusal":         "HTTP/1.1 403 TOP-SECRET-D\r\n\r\n" + `{"errors":[{"code":"DENIED","message":"TOP-SECRET-D"}]}`,
		"no HTTP":           "TOP-SECRET-E\r\n\r\n",
		"a status":          "HTTP/1.1 TOP-SECRET-F\r\n\r\n",
		"a header":          ok + "TOP-SECRET-G\r\n\r\n",
		"a length":          ok + "Content-Length: TOP-SECRET-H\r\n\r\n",
		"an encoding":       ok + "Transfer-Encoding: TOP-SECRET-I\r\n\r\n",
		"a chunk":           ok + "Transfer-Encoding: chunked\r\n\r\nTOP-SECRET-J\r\n",
		"a trailer":         ok + "Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n0\r\nTOP-SECRET-K\r\n\r\n",
		"behind the body":   ok + "Content-Length: 2\r\n\r\n{}TOP-SECRET-L",
		"a redirect":        "HTTP/1.1 302 Found\r\nLocation: http://TOP-SECRET-M.test/\r\n\r\n",
		"a redirect's path": "HTTP/1.1 302 Found\r\nLocation: /%TOP-SECRET-N\r\n\r\n",
		"a protocol":        "HTTP/1.1 302 Found\r\nLocation: TOP-SECRET-O://localhost/\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			registry.Virtually(t, func(t *testing.T) {
				secret := answer[strings.Index(answer, "TOP-SECRET"):][:12]
				for _, change := range [][]func(*registry.Config){{withPassword}, nil} {
					o := newOrigin(t)
					s := o.withTokens(&tokens{})
					s.answer(func(w http.ResponseWriter, _ *http.Request) bool {
						conn, _, err := http.NewResponseController(w).Hijack()
						if err != nil {
							t.Error(err)
							return true
						}
						_, _ = io.WriteString(conn, answer)
						_ = conn.Close()
						return true
					})
					o.push("v1", 1000)
					p := start(t, o.URL, t.TempDir(), change...)
					a := get(t, p.tag("v1"))
					if a.status < 400 || strings.Contains(strings.ToUpper(fmt.Sprint(string(a.body), a.header)), secret) {
						t.Errorf("%s, header %v", a, a.header)
					}
					if s.asked() == 0 {
						t.Error("the token server was not asked: this proves nothing")
					}
				}
				if logs.has(secret) || logs.has(strings.ToLower(secret)) {
					t.Errorf("%s is in the log", secret)
				}
			})
		})
	}
}
