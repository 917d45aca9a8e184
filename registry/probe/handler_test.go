package probe_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/gardener-extensions/registry-cache/registry/probe"
)

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
		probe.Handler(http.Header{"x-content-type-options": {"nosniff"}}, next).
			ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), method, path, http.NoBody))
		if recorder.Code != want || want == 200 && recorder.Header().Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s is answered %d, %v", request, recorder.Code, recorder.Header())
		}
	}
}
