package upstream

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
)

// TestChangedPassword checks that a refused password is replaced at once if it has changed, as with
// Amazon ECR. The status of the refusal does not matter. It also checks that requests identify the
// cache.
func TestChangedPassword(t *testing.T) {
	for _, status := range []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusBadRequest} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			var right atomic.Value
			right.Store("first")
			var asked atomic.Int32
			registry := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked.Add(1)
				if !strings.HasPrefix(r.UserAgent(), "registry-cache/") {
					t.Errorf("the user agent is %q", r.UserAgent())
				}
				switch _, password, ok := r.BasicAuth(); {
				case r.URL.Path == "/v2/":
				case !ok:
					w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
					w.WriteHeader(http.StatusUnauthorized)
				case password != right.Load():
					w.WriteHeader(status)
				}
			}))
			defer registry.Close()
			at, err := url.Parse(registry.URL)
			if err != nil {
				t.Fatal(err)
			}
			var refused atomic.Int32
			password := atomic.Value{}
			password.Store("first")
			c := New(t.Context(), Options{
				URL: at,
				Credentials: func(_ context.Context, no string) (string, string, error) {
					if no != "" {
						refused.Add(1)
						password.Store("second")
					}
					return "robot", password.Load().(string), nil
				},
			})
			get := func(object string, want int32) {
				t.Helper()
				before := asked.Load()
				response, err := c.Do(t.Context(), http.MethodGet, "app", "manifests/"+object, nil)
				if err != nil {
					t.Errorf("%s: %v", object, err)
				} else {
					_ = response.Body.Close()
				}
				if n := asked.Load() - before; n != want {
					t.Errorf("%s: %d requests, want %d", object, n, want)
				}
			}
			get("v1", 2)
			get("v2", 1)
			right.Store("second")
			get("v3", 2)
			get("v4", 1)
			right.Store("third")                                                   // unknown to the registry
			_, err = c.Do(t.Context(), http.MethodGet, "app", "manifests/v5", nil) //nolint:bodyclose // there is no body
			if no, ok := errors.AsType[*RefusedError](err); !ok || no.Status != status {
				t.Errorf("the error is %v", err)
			}
			if n := refused.Load(); n != 2 {
				t.Errorf("%d passwords were refused, want 2", n)
			}
		})
	}
}
