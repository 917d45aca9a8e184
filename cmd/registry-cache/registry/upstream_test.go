package registry

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

func TestUpstreamAnswersAreCounted(t *testing.T) {
	reached := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/hang" {
			close(reached)
			<-r.Context().Done()
			return
		}
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	t.Cleanup(server.Close)
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	abandoned, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		<-reached
		cancel()
	}()

	upstreamRequests.Reset()
	client := http.Client{Transport: counted{http.DefaultTransport}}
	ask(t.Context(), t, client, server.URL)
	ask(t.Context(), t, client, server.URL)
	ask(t.Context(), t, client, gone.URL)
	ask(abandoned, t, client, server.URL+"/hang")
	metrics := httptest.NewRecorder()
	promhttp.Handler().ServeHTTP(metrics, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	for _, want := range []string{`{code="429"} 2`, `{code="canceled"} 1`, `{code="error"} 1`} {
		if !strings.Contains(metrics.Body.String(), "\nregistry_proxy_upstream_requests_total"+want+"\n") {
			t.Errorf("no %s in:\n%s", want, metrics.Body)
		}
	}
}

func ask(ctx context.Context, t *testing.T, client http.Client, url string) {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		return
	}
	_, _ = io.Copy(io.Discard, response.Body)
	_ = response.Body.Close()
}
