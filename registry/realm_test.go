package registry_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/gardener-extensions/registry-cache/registry"
)

// TestRealm: username and password are sent only to the upstream's own site, whatever realm its
// challenge names. Other sites are asked for an anonymous token.
func TestRealm(t *testing.T) {
	for _, name := range []string{
		"registry.alpha.example", "auth.alpha.example", "registry.beta.example", "alpha.example.gamma.example", "alpha.github.io", "beta.github.io",
	} {
		named(t, name, "127.0.0.1")
	}
	for name, test := range map[string]struct {
		upstream, realm string // hosts
		trusted         bool
	}{
		"another name":             {"127.0.0.1", "localhost", false},
		"another address":          {"127.0.0.1", "127.0.0.2", false},
		"another port":             {"127.0.0.1", "127.0.0.1", true},
		"the same domain":          {"registry.alpha.example", "auth.alpha.example", true},
		"another domain":           {"registry.alpha.example", "registry.beta.example", false},
		"a domain like it":         {"registry.alpha.example", "alpha.example.gamma.example", false},
		"a domain with many sites": {"alpha.github.io", "beta.github.io", false},
		"a name of the address":    {"registry.alpha.example", "127.0.0.1", false},
	} {
		t.Run(name, func(t *testing.T) {
			registry.Virtually(t, func(t *testing.T) {
				o, s := newOrigin(t), &tokens{}
				address := "127.0.0.1"
				if test.realm == "127.0.0.2" {
					address = "127.0.0.2"
				}
				realm := serveOn(t, address, s)
				o.wantTokens(s, at(realm, test.realm)+"/token")
				pushed := o.push("v1", 1000)
				p := start(t, at(o.Server, test.upstream), t.TempDir(), withPassword)
				if a := get(t, p.tag("v1")); a.status != 200 || a.digest() != pushed.manifest.String() {
					t.Errorf("%s", a)
				}
				if got := s.got("pass-word") || s.got("robot"); got != test.trusted {
					t.Errorf("%s received the credentials of %s: %t, want %t", test.realm, test.upstream, got, test.trusted)
				}
				if s.asked() == 0 {
					t.Error("the token server was not asked: this proves nothing")
				}
			})
		})
	}
}

// TestRedirectedAuthorization: if containerd would pass its token on to a redirect target, and the
// target demands a token, it receives the token of the cache (regclient#143, moby#50065). No other
// site receives it.
func TestRedirectedAuthorization(t *testing.T) {
	for name, test := range map[string]struct {
		target  string
		gets    bool // whether it receives the token
		refuses bool // whether it refuses requests without one
	}{
		"another port":              {"registry.alpha.example", true, true},
		"a name below":              {"cdn.registry.alpha.example", true, true},
		"a name below, public":      {"cdn.registry.alpha.example", false, false},
		"another name of the site":  {"cdn.alpha.example", false, true},
		"another site":              {"registry.beta.example", false, true},
		"another site, by its port": {"127.0.0.1", false, true},
	} {
		t.Run(name, func(t *testing.T) {
			registry.Virtually(t, func(t *testing.T) {
				o, storage := newOrigin(t), newOrigin(t)
				i := o.push("v1", 1000)
				o.withTokens(&tokens{})
				var got atomic.Bool
				storage.when("/blobs/", func(w http.ResponseWriter, r *http.Request) bool {
					if r.Header.Get("Authorization") == "" {
						return test.refuses && status(http.StatusUnauthorized)(w, r)
					}
					got.Store(true)
					return false
				})
				storage.pushBlob(app, i.content)
				o.when("/blobs/", func(w http.ResponseWriter, r *http.Request) bool {
					return r.Header.Get("Authorization") != "" &&
						status(http.StatusTemporaryRedirect, "Location", at(storage.Server, test.target)+r.URL.Path)(w, r)
				})
				p := start(t, at(o.Server, "registry.alpha.example"), t.TempDir())
				if a := get(t, p.blob(i.layer.String())); a.is(i.content) != (test.gets || !test.refuses) {
					t.Errorf("%s", a)
				}
				if got.Load() != test.gets {
					t.Errorf("the token was sent: %t, want %t", got.Load(), test.gets)
				}
				if storage.requests("/blobs/") == 0 {
					t.Error("the target was not asked: this proves nothing")
				}
			})
		})
	}
}

// at returns the URL of a server with another host name.
func at(s *httptest.Server, host string) string {
	return "http://" + host + s.URL[strings.LastIndex(s.URL, ":"):]
}
