package probe

import (
	"io"
	"net/http"

	"github.com/distribution/distribution/v3/health"
)

const body = "{}"

// Handler answers GET /v2/ like distribution, but without its routing, contexts and metrics and
// without a line in the log. If a health check of distribution fails, next answers, with 503. All
// other requests are next's, too. The headers are http.headers of the configuration.
func Handler(headers http.Header, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v2/" || r.Method != http.MethodGet || r.URL.RawQuery != "" || len(health.CheckStatus(r.Context())) > 0 {
			next.ServeHTTP(w, r)
			return
		}
		for name, values := range answerHeaders(headers) {
			w.Header()[name] = values
		}
		_, _ = io.WriteString(w, body)
	})
}

// answerHeaders returns the configured headers and those of distribution's answer.
func answerHeaders(configured http.Header) http.Header {
	headers := http.Header{}
	for name, values := range configured {
		headers[http.CanonicalHeaderKey(name)] = values
	}
	headers.Set("Docker-Distribution-API-Version", "registry/2.0")
	headers.Set("Content-Type", "application/json")
	return headers
}
