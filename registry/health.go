package registry

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/gardener-extensions/registry-cache/registry/metrics"
)

const (
	// healthFor is how long an answer about the own port counts.
	healthFor = time.Second
	// healthTime bounds the wait for the own port.
	healthTime = time.Second
)

// health says whether the cache can serve: its disk does not hang, its certificate has not expired,
// and its port answers.
type health struct {
	works       func() context.Context
	certificate *tls.Certificate // or nil
	address     string           // of the own port

	mu      sync.Mutex
	checked time.Time
	err     error
}

// disk returns an error while the disk hangs.
func (h *health) disk() error { return context.Cause(h.works()) }

// check returns why nodes should not ask this cache, or nil. Many callers share one look at the
// port.
func (h *health) check(ctx context.Context) error {
	if err := h.disk(); err != nil { //nolint:contextcheck // of the disk
		return err
	}
	if h.certificate != nil && time.Now().After(h.certificate.Leaf.NotAfter) {
		return errors.New("the certificate has expired")
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if time.Since(h.checked) > healthFor {
		h.err = answers(ctx, h.address)
		h.checked = time.Now()
	}
	return h.err
}

// answers returns an error if the server at an address does not answer. One with TLS answers plain
// HTTP with 400, which is enough.
func answers(ctx context.Context, address string) error {
	dialer := net.Dialer{Timeout: healthTime}
	connection, err := dialer.DialContext(context.WithoutCancel(ctx), "tcp", address) // others wait for the result
	if err == nil {
		defer func() { _ = connection.Close() }()
		_ = connection.SetDeadline(time.Now().Add(healthTime))
		_, err = io.WriteString(connection, "GET /v2/ HTTP/1.0\r\n\r\n")
	}
	if err == nil {
		_, err = connection.Read(make([]byte, 1))
	}
	if err != nil {
		return fmt.Errorf("the cache does not answer on its own port: %w", err)
	}
	return nil
}

// debugHandler answers what nodes, the kubelet and Prometheus ask for: /debug/health, as a stock
// image, and metrics.
func debugHandler(config *Config, h *health) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/health", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		failed := map[string]string{}
		if err := h.check(r.Context()); err != nil {
			failed["cache"] = err.Error()
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_ = json.NewEncoder(w).Encode(failed)
	})
	if config.HTTP.Debug.Prometheus.Enabled {
		gatherers := prometheus.Gatherers{prometheus.DefaultGatherer, metrics.Registry}
		mux.Handle(config.HTTP.Debug.Prometheus.Path, promhttp.HandlerFor(gatherers, promhttp.HandlerOpts{}))
	}
	return mux
}
