package registry

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// onlyPaths limits a fault to paths that contain text.
func onlyPaths(text string, f fault) fault {
	return fault{answer: func(u *testUpstream, w http.ResponseWriter, r *http.Request) bool {
		return strings.Contains(r.URL.Path, text) && f.answer(u, w, r)
	}}
}

// TestOneBadObject checks that an object that hangs or fails does not affect pulls from other
// repositories.
func TestOneBadObject(t *testing.T) {
	t.Parallel()
	for name, bad := range map[string]fault{"hangs": {answer: hang}, "500": {answer: status(http.StatusInternalServerError)}} {
		t.Run(name, func(t *testing.T) {
			Virtually(t, func(t *testing.T) {
				u := newTestUpstream(t, false)
				good := u.push(t, "v1", 1, 100<<10)
				cache := newTestServer(t, u, t.TempDir())
				defer u.breakWith(t, onlyPaths("/other/", bad))()
				for range 3 {
					if a := getFrom(t, http.MethodGet, cache.URL+"/v2/library/other/manifests/v1"); a.status < 500 {
						t.Errorf("a bad object: %d", a.status)
					}
				}
				// A probe of the bad object takes up to 1.5 s.
				for end := time.Now().Add(4 * time.Second); time.Now().Before(end); <-time.After(10 * time.Millisecond) {
					if a := getFrom(t, http.MethodHead, cache.manifest(good.tag)); a.status != http.StatusOK || a.took > patience {
						t.Fatalf("an object of another repository: %d after %s", a.status, a.took)
					}
				}
			})
		})
	}
}

// TestBadBlob checks that a blob that fails does not make the tags of its repository stale.
func TestBadBlob(t *testing.T) {
	Virtually(t, func(t *testing.T) {
		u := newTestUpstream(t, false)
		u.push(t, "v1", 1, 1000)
		cache := newTestServer(t, u, t.TempDir())
		bad := u.pushBlob(t, []byte("bad blob"))
		defer u.breakWith(t, onlyPaths(bad.Digest.String(), fault{answer: status(http.StatusInternalServerError)}))()
		for range 3 {
			if a := getFrom(t, http.MethodGet, cache.blob(bad.Digest.String())); a.status < 500 {
				t.Errorf("the bad blob: %d", a.status)
			}
			pushed := u.push(t, "v1", 1, 1000)
			await(t, "the tag is that of the upstream", func() bool { // the last answer is reused for a second
				a := getFrom(t, http.MethodHead, cache.manifest("v1"))
				if a.header.Get("Warning") != "" {
					t.Fatal("the tag is stale")
				}
				return a.header.Get("Docker-Content-Digest") == pushed.manifest.String()
			})
		}
	})
}

// TestRefusedToken checks that a token server's refusal does not count as an outage.
func TestRefusedToken(t *testing.T) {
	Virtually(t, func(t *testing.T) {
		u := newTestUpstream(t, true)
		u.push(t, "v1", 1, 1000)
		cache := newTestServer(t, u, t.TempDir()) // without credentials
		u.credential = "secret"
		undo := u.breakWith(t, onlyPaths("/v2/library/", fault{answer: hang}))
		if a := getFrom(t, http.MethodGet, cache.manifest("v1")); a.status != http.StatusGatewayTimeout {
			t.Errorf("while the upstream hangs: %d", a.status)
		}
		undo()
		await(t, "the refusal is passed on", func() bool {
			return getFrom(t, http.MethodGet, cache.manifest("v1")).status == http.StatusUnauthorized
		})
	})
}

// TestSlowHeader checks that a blob is stored even if its header takes longer than a client waits,
// and that other objects are served meanwhile.
func TestSlowHeader(t *testing.T) {
	Virtually(t, func(t *testing.T) {
		u := newTestUpstream(t, false)
		slow, other := u.push(t, "v1", 1, 100<<10), u.push(t, "v2", 1, 100<<10)
		cache := newTestServer(t, u, t.TempDir())
		for blob := range slow.content {
			defer u.breakWith(t, onlyPaths(blob.String(), fault{answer: func(_ *testUpstream, _ http.ResponseWriter, r *http.Request) bool {
				if r.Method == http.MethodGet {
					select {
					case <-time.After(4 * time.Second):
					case <-r.Context().Done():
					}
				}
				return false
			}}))()
			start := time.Now()
			if a := getFrom(t, http.MethodGet, cache.blob(blob.String())); a.status != http.StatusGatewayTimeout || a.took > firstPatience {
				t.Errorf("the slow blob: %d after %s", a.status, a.took)
			}
			for ; cache.stored(t) == 0 && time.Since(start) < 10*time.Second; <-time.After(10 * time.Millisecond) {
				if a := getFrom(t, http.MethodHead, cache.manifest(other.tag)); a.status != http.StatusOK || a.took > patience {
					t.Fatalf("another object: %d after %s", a.status, a.took)
				}
			}
		}
		cache.await(t, 2)
	})
}
