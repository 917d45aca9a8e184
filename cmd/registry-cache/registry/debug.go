package registry

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/distribution/distribution/v3/configuration"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/sirupsen/logrus"
)

// debugServer answers what probes and Prometheus ask for, on a port of its own.
type debugServer struct {
	server *http.Server
	failed chan error
}

// startDebugServer serves /debug/health and /debug/vars, which distribution and expvar register with
// http.DefaultServeMux, and the metrics. It listens when it returns. Without an address it does nothing.
func startDebugServer(ctx context.Context, config configuration.Debug) (*debugServer, error) {
	debug := &debugServer{failed: make(chan error, 1)}
	if config.Addr == "" {
		return debug, nil
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", config.Addr)
	if err != nil {
		return nil, fmt.Errorf("cannot start the debug server: %w", err)
	}
	debug.server = &http.Server{Handler: debugHandler(config), ReadHeaderTimeout: 10 * time.Second}
	logrus.Infof("debug server listening on %v", listener.Addr())
	go func() {
		if err := debug.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			debug.failed <- err
		}
	}()
	return debug, nil
}

func debugHandler(config configuration.Debug) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/debug/", http.DefaultServeMux)
	if config.Prometheus.Enabled {
		path := config.Prometheus.Path
		if path == "" {
			path = "/metrics"
		}
		mux.Handle(path, promhttp.Handler())
	}
	return mux
}

// Close ends the server without waiting for anybody.
func (d *debugServer) Close() {
	if d.server != nil {
		_ = d.server.Close()
	}
}
