package registry

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// only limits a fault to paths that contain the text.
func only(text string, f fault) fault {
	return fault{answer: func(u *testUpstream, w http.ResponseWriter, r *http.Request) bool {
		return strings.Contains(r.URL.Path, text) && f.answer(u, w, r)
	}}
}

// TestOneBadObject checks that an object that hangs or fails does not keep the images of other
// repositories from the nodes.
func TestOneBadObject(t *testing.T) {
	t.Parallel()
	for name, bad := range map[string]fault{"hangs": {answer: hang}, "500": {answer: status(http.StatusInternalServerError)}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := newTestUpstream(t, false)
			good := u.push(t, "v1", 1, 100<<10)
			cache := newTestServer(t, u, t.TempDir())
			defer u.breakWith(t, only("/other/", bad))()
			for range 3 {
				if a := getFrom(t, http.MethodGet, cache.URL+"/v2/library/other/manifests/v1"); a.status < 500 {
					t.Errorf("a bad object: %d", a.status)
				}
			}
			// A probe of the bad object takes up to 1.5 s.
			for end := time.Now().Add(4 * time.Second); time.Now().Before(end); {
				if a := getFrom(t, http.MethodHead, cache.manifest(good.tag)); a.status != http.StatusOK || a.took > patience {
					t.Fatalf("an object of another repository: %d after %s", a.status, a.took)
				}
			}
		})
	}
}

// TestSlowHeader checks that a blob whose header takes longer than a client waits is stored all the
// same, and that other objects are served meanwhile.
func TestSlowHeader(t *testing.T) {
	t.Parallel()
	u := newTestUpstream(t, false)
	slow, other := u.push(t, "v1", 1, 100<<10), u.push(t, "v2", 1, 100<<10)
	cache := newTestServer(t, u, t.TempDir())
	for blob := range slow.content {
		defer u.breakWith(t, only(blob.String(), fault{answer: func(_ *testUpstream, _ http.ResponseWriter, r *http.Request) bool {
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
		for cache.stored(t) == 0 && time.Since(start) < 10*time.Second {
			if a := getFrom(t, http.MethodHead, cache.manifest(other.tag)); a.status != http.StatusOK || a.took > patience {
				t.Fatalf("another object: %d after %s", a.status, a.took)
			}
		}
	}
	cache.await(t, 2)
}
