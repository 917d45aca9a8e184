package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	upstreamregistry "github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/gardener-extensions/registry-cache/internal/program"
)

// outage is an upstream that can be switched off: while off, it accepts connections but does not
// answer. It may require tokens.
type outage struct {
	*httptest.Server
	out atomic.Bool
	// unanswered counts the requests during an outage.
	unanswered atomic.Int32
	tokens     bool
	// shown is true once the upstream's token server has received the credentials.
	shown atomic.Bool
	over  chan struct{}
}

func newOutage(t *testing.T, tokens bool) *outage {
	t.Helper()
	o := &outage{tokens: tokens, over: make(chan struct{})}
	registry := upstreamregistry.New(upstreamregistry.Logger(log.New(io.Discard, "", 0)))
	o.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch harness := strings.HasPrefix(r.UserAgent(), "go-containerregistry"); {
		case o.out.Load():
			o.unanswered.Add(1)
			select {
			case <-r.Context().Done():
			case <-o.over:
			}
		case r.URL.Path == "/token":
			if user, password, ok := r.BasicAuth(); ok && user == username && password == "secret" {
				o.shown.Store(true)
			}
			_, _ = io.WriteString(w, `{"token":"granted"}`)
		case o.tokens && !harness && r.Header.Get("Authorization") != "Bearer granted":
			w.Header().Set("WWW-Authenticate", fmt.Sprintf("Bearer realm=%q,service=%q", o.URL+"/token", "registry"))
			w.WriteHeader(http.StatusUnauthorized)
		default:
			registry.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(func() { close(o.over); o.Close() })
	return o
}

// push pushes a new image and returns its reference without the registry.
func (o *outage) push(t *testing.T, tag string) string {
	t.Helper()
	image, err := random.Image(64<<10, layers)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(parse(t, o.URL, repository+":"+tag), image); err != nil {
		t.Fatal(err)
	}
	return repository + ":" + tag
}

// cacheOf returns a cache of the upstream, and its configuration. The caller must start the cache.
func cacheOf(t *testing.T, o *outage, credentials bool) (cache *servedCache, config string) {
	t.Helper()
	cache = &servedCache{url: "http://" + freeAddress(t), debugURL: "http://" + freeAddress(t), storage: t.TempDir(), log: &syncBuffer{}}
	config = cache.config(o.URL)
	if credentials {
		config = strings.Replace(config, "ttl: 2h", "ttl: 2h, username: '"+username+"', password: secret", 1)
	}
	return cache, writeConfig(t, config)
}

func (s *servedCache) start(t testing.TB, config string) *child {
	t.Helper()
	c := startChild(t, "serve", config)
	c.expect(t, "cache listening on "+strings.TrimPrefix(s.url, "http://"))
	c.drain()
	return c
}

// TestServeDuringAnOutage: a cache that starts while its upstream hangs serves its stored content,
// by tag and to several nodes at once, within the time of one probe. It recovers when the upstream
// is back (distribution#4038).
func TestServeDuringAnOutage(t *testing.T) {
	t.Parallel()
	upstream := newOutage(t, false)
	stored := upstream.push(t, "v1")
	cache, config := cacheOf(t, upstream, false)
	c := cache.start(t, config)
	cache.pull(t, stored)
	cache.awaitStored(t, layers+1)
	if code, _, log := c.terminate(t); code != program.ExitFine {
		t.Fatalf("exit code %d:\n%s", code, log)
	}

	upstream.out.Store(true)
	cache.start(t, config)
	before, start := upstream.unanswered.Load(), time.Now()
	var pulls sync.WaitGroup
	for range 8 {
		pulls.Go(func() {
			if err := pull(parse(t, cache.url, stored)); err != nil {
				t.Error(err)
			}
		})
	}
	pulls.Wait()
	// On a slow machine the pulls take longer, with more probes: one in each second.
	took, asked := time.Since(start), upstream.unanswered.Load()-before
	if most := 2 + int32(took/time.Second); asked > most {
		t.Errorf("eight pulls of a stored image took %s and sent %d requests to the upstream, want at most %d", took, asked, most)
	}
	if body, status := get(t.Context(), t, cache.debugURL+"/debug/health"); status != http.StatusOK {
		t.Errorf("/debug/health returns %d: %s", status, body)
	}

	upstream.out.Store(false)
	fresh := upstream.push(t, "v2")
	cache.awaitPull(t, fresh)
}

// awaitPull waits until the image can be pulled.
func (s *servedCache) awaitPull(t *testing.T, image string) {
	t.Helper()
	var last error
	s.waitUntil(t, "pull "+image, func(context.Context) (bool, error) {
		last = pull(parse(t, s.url, image))
		return last == nil, nil
	})
}

// TestServeStartsDuringAnOutage: a cache that starts while its upstream does not answer needs no
// restart when the upstream comes back, with or without authentication (distribution#4038).
func TestServeStartsDuringAnOutage(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ tokens, credentials bool }{
		"anonymous":              {},
		"anonymous tokens":       {tokens: true},
		"tokens for credentials": {tokens: true, credentials: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			upstream := newOutage(t, test.tokens)
			image := upstream.push(t, "v1")
			cache, config := cacheOf(t, upstream, test.credentials)
			upstream.out.Store(true)
			cache.start(t, config)
			if err := pull(parse(t, cache.url, image)); err == nil {
				t.Fatal("an image was pulled during the outage")
			}
			upstream.out.Store(false)
			cache.awaitPull(t, image)
			if upstream.shown.Load() != test.credentials {
				t.Errorf("the token server received credentials: %t", upstream.shown.Load())
			}
		})
	}
}
