package server

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

// TestProfile checks that a profile serves tokens on the sibling host and content on the foreign
// host, that a token lives as long as the fault, and that pushes are not affected.
func TestProfile(t *testing.T) {
	b := startBroken(t)
	hub := want(t, spec.Profile, "name", "docker-hub")
	b.set(t, hub)
	challenge := b.ask(t, http.MethodGet, b.blob, containerd)
	if got := challenge.header.Get("WWW-Authenticate"); challenge.status != http.StatusUnauthorized ||
		!strings.HasPrefix(got, `Bearer realm="http://site.alpha.test/token",`) {
		t.Fatalf("status %d, challenge %s", challenge.status, got)
	}
	token := b.token(t)
	redirect := b.askAuthorized(t, b.blob, token)
	location := redirect.header.Get("Location")
	if redirect.status != http.StatusTemporaryRedirect || !strings.HasPrefix(location, "http://alpha.elsewhere.test/hop1"+b.blob+"?") {
		t.Fatalf("status %d, location %s", redirect.status, location)
	}
	content := b.ask(t, http.MethodGet, strings.TrimPrefix(location, "http://alpha.elsewhere.test"), containerd)
	if content.status != http.StatusOK || !bytes.Equal(content.body, b.content) {
		t.Errorf("status %d, %d bytes, want %d", content.status, len(content.body), len(b.content))
	}
	again := hub
	again.Began = again.Began.Add(time.Second)
	b.set(t, again)
	if got := b.askAuthorized(t, b.blob, token); got.status != http.StatusUnauthorized {
		t.Errorf("the token of an earlier fault is answered %d", got.status)
	}
	b.push(t, "other:v1")
	b.set(t)
	if got := b.ask(t, http.MethodGet, b.blob, containerd); got.status != http.StatusOK {
		t.Errorf("status %d after the fault", got.status)
	}
	hit := b.hit(t)
	if len(hit) != 5 || len(hit.Filter(func(r accesslog.Record) bool { return r.Authorization })) != 2 {
		t.Errorf("%d requests met the profile: %+v", len(hit), hit)
	}
}

func (b *broken) token(t *testing.T) string {
	t.Helper()
	repository := strings.Split(b.blob, "/")[2]
	got := b.ask(t, http.MethodGet, "/token?scope=repository:"+repository+":pull", containerd)
	var body struct{ Token string }
	if err := json.Unmarshal(got.body, &body); err != nil || body.Token == "" {
		t.Fatalf("status %d, %s, %v", got.status, got.body, err)
	}
	return body.Token
}

// askAuthorized does not follow a redirect.
func (b *broken) askAuthorized(t *testing.T, path, token string) answer {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("User-Agent", containerd)
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	return answer{status: response.StatusCode, header: response.Header}
}

func TestSites(t *testing.T) {
	sites := Sites{Sibling: "site.alpha.test", Foreign: "alpha.elsewhere.test"}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://alpha.test:80/v2/", nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"port": "http://alpha.test:8080", "sibling": "http://site.alpha.test", "foreign": "http://alpha.elsewhere.test", "private": "",
	} {
		if got := sites.sitesOf(request)[name]; got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}
