package namespace

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestProbesAreNotLogged: each node asks for /v2/ every six seconds, which would hide the pulls.
func TestProbesAreNotLogged(t *testing.T) {
	before := slog.Default()
	t.Cleanup(func() { slog.SetDefault(before) })
	for name, test := range map[string]struct {
		path   string
		status int
		want   string
	}{
		"a probe":          {"/v2/", http.StatusOK, "DEBUG"},
		"a failed probe":   {"/v2/", http.StatusServiceUnavailable, "INFO"},
		"a pull":           {"/v2/a/manifests/b", http.StatusOK, "INFO"},
		"a probe as query": {"/v2/?n=1", http.StatusOK, "DEBUG"},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			slog.SetDefault(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))
			handler := Handler(time.Second, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(test.status) }))
			handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, test.path, nil))
			if !strings.Contains(log.String(), "level="+test.want+` msg="response completed"`) {
				t.Errorf("want level %s, got %s", test.want, log.String())
			}
		})
	}
}
