package registry

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"testing"

	"github.com/distribution/distribution/v3/health"
)

// TestProbe: the answer to a probe is distribution's own, header by header, and only if the cache
// can serve.
func TestProbe(t *testing.T) {
	checks := health.NewStatusUpdater()
	health.Register(t.Name(), checks)
	server := newTestServer(t, newTestUpstream(t, true), t.TempDir())
	const ours, distributions = "/v2/", "/v2/?n=1"
	for _, test := range []struct {
		err    error
		status int
	}{{nil, http.StatusOK}, {errors.New("input/output error"), http.StatusServiceUnavailable}, {nil, http.StatusOK}} {
		checks.Update(test.err)
		got, want := getFrom(t, http.MethodGet, server.URL+ours), getFrom(t, http.MethodGet, server.URL+distributions)
		got.header.Del("Date")
		want.header.Del("Date")
		if got.status != test.status || want.status != test.status {
			t.Errorf("with the health check's error %v a probe is answered %d, by distribution %d", test.err, got.status, want.status)
		}
		if string(got.body) != string(want.body) || !reflect.DeepEqual(got.header, want.header) {
			t.Errorf("got %v %s\nwant %v %s", got.header, got.body, want.header, want.body)
		}
	}
}

func TestOnlyProbesAreAnsweredAtOnce(t *testing.T) {
	next := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	for request, want := range map[string]int{
		"GET /v2/": 200, "HEAD /v2/": 418, "GET /v2/?ns=other.test": 418, "GET /v2": 418, "GET /v2/a/manifests/b": 418,
	} {
		var method, path string
		if _, err := fmt.Sscan(request, &method, &path); err != nil {
			t.Fatal(err)
		}
		recorder := httptest.NewRecorder()
		answerProbes(http.Header{"x-content-type-options": {"nosniff"}}, next).
			ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), method, path, http.NoBody))
		if recorder.Code != want || want == 200 && recorder.Header().Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s is answered %d, %v", request, recorder.Code, recorder.Header())
		}
	}
}
