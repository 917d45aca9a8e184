package nodeconfig_test

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
)

func TestScriptWritesHostsOnceTheCacheAnswers(t *testing.T) {
	n := newNode(t)
	alpha, v6 := newCache(t, "alpha.test", ready), newCache(t, "[2001:db8::1]:5000", ready)
	n.run(t, alpha.Registry, v6.Registry)
	n.expectHosts(t, alpha.Registry)
	n.expectHosts(t, v6.Registry)
	n.expectEntries(t, "[2001:db8::1]:5000", "alpha.test")
	info, err := os.Stat(n.path("alpha.test"))
	if err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("mode %v, %v, want 0644", info.Mode(), err)
	}
}

func TestScriptTakesOnly200AsReady(t *testing.T) {
	for _, status := range []int{204, 301, 401, 404, 429, 500, 503} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			n := newNode(t)
			n.env = append(n.env, "GIVE_UP_AFTER=0")
			elsewhere := newCache(t, "elsewhere.test", ready)
			c := newCache(t, "alpha.test", func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", elsewhere.Endpoint+"/v2/")
				w.WriteHeader(status)
			})
			log := n.run(t, c.Registry)
			n.expectEntries(t)
			if want := fmt.Sprintf("giving up on %s after 0 s (HTTP status %d)", c.Endpoint, status); !strings.Contains(log, want) {
				t.Errorf("the log does not say %q:\n%s", want, log)
			}
		})
	}
}

func TestScriptRetriesUntilReady(t *testing.T) {
	n := newNode(t)
	var c *cache
	c = newCache(t, "alpha.test", func(w http.ResponseWriter, _ *http.Request) {
		if _, err := os.Stat(n.path("alpha.test")); err == nil {
			t.Error("hosts.toml is there before the cache is ready")
		}
		if c.requests.Load() <= 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	log := n.run(t, c.Registry)
	n.expectHosts(t, c.Registry)
	if got := strings.Count(log, "HTTP status 503"); got != 1 {
		t.Errorf("the same answer is logged %d times, want once:\n%s", got, log)
	}
}

func TestScriptSlowsDownWhileNothingAnswers(t *testing.T) {
	n := newNode(t)
	n.env = append(n.env, "PROBE_INTERVAL=3", "PROBE_STEADY_FOR=0")
	n.tool(t, "sleep", `echo "slept $1" >&2`)
	var c *cache
	c = newCache(t, "alpha.test", func(w http.ResponseWriter, _ *http.Request) {
		if c.requests.Load() <= 7 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	log := n.run(t, c.Registry)
	for _, seconds := range []int{3, 6, 12, 24, 48, 60, 60} {
		line := fmt.Sprintf("slept %d\n", seconds)
		if !strings.Contains(log+"\n", line) {
			t.Fatalf("the script does not sleep %d s next:\n%s", seconds, log)
		}
		log = strings.Replace(log+"\n", line, "", 1)
	}
}

func TestScriptDoesNotLetOneCacheHoldBackAnother(t *testing.T) {
	for name, handler := range map[string]http.HandlerFunc{"hangs": hang, "fails": answer(500)} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			bad, good := newCache(t, "alpha.test", handler), newCache(t, "beta.test", ready)
			p := n.start(t, arguments(bad.Registry, good.Registry)...)
			p.expect("beta.test: pulls go through")
			n.expectHosts(t, good.Registry)
			n.expectEntries(t, "beta.test")
		})
	}
}

func TestScriptAsksAgainWhenTheCacheHangs(t *testing.T) {
	n := newNode(t)
	n.env = append(n.env, "PROBE_TIMEOUT=0.2")
	var c *cache
	c = newCache(t, "alpha.test", func(w http.ResponseWriter, r *http.Request) {
		if c.requests.Load() == 1 {
			hang(w, r)
		}
	})
	n.run(t, c.Registry)
	n.expectHosts(t, c.Registry)
}

func TestScriptIgnoresTheProxyOfTheNode(t *testing.T) {
	n := newNode(t)
	n.env = append(n.env, "http_proxy=http://127.0.0.1:1", "GIVE_UP_AFTER=0")
	c := newCache(t, "alpha.test", ready)
	n.run(t, c.Registry)
	n.expectHosts(t, c.Registry)
}
