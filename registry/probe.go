package registry

import (
	"io"
	"net/http"

	"github.com/distribution/distribution/v3/health"
)

// answerProbes answers GET /v2/ like distribution, but without its routing, contexts and metrics
// and without a line in the log: every node asks this every six seconds. If a health check fails,
// next answers, with 503.
func answerProbes(headers http.Header, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v2/" || r.Method != http.MethodGet || r.URL.RawQuery != "" || len(health.CheckStatus(r.Context())) > 0 {
			next.ServeHTTP(w, r)
			return
		}
		for name, values := range headers {
			w.Header()[http.CanonicalHeaderKey(name)] = values
		}
		w.Header().Set("Docker-Distribution-API-Version", "registry/2.0")
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, "{}")
	})
}
