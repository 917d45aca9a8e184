// Package registry serves a pull-through cache for one upstream: the pull part of the OCI
// distribution-spec, with distribution's configuration format and storage layout.
//
// This package contains the configuration, the servers, and the answers to clients. Package cache
// gets content from the volume (package store), from other replicas or from the upstream (both
// package upstream). Package index tracks what is stored, and chooses what is evicted. Package ecr
// gets credentials for Amazon ECR.
package registry

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/sync/semaphore"

	"github.com/gardener-extensions/registry-cache/registry/cache"
	"github.com/gardener-extensions/registry-cache/registry/metrics"
	"github.com/gardener-extensions/registry-cache/registry/store"
	"github.com/gardener-extensions/registry-cache/registry/upstream"
)

// StartError is returned when the cache cannot start, for example because its address is in use.
type StartError struct{ cause error }

// Error implements error.
func (e *StartError) Error() string { return "start the cache: " + e.cause.Error() }

func (e *StartError) Unwrap() error { return e.cause }

// EnvironmentError marks an error of the environment: the same start may succeed later.
func (e *StartError) EnvironmentError() {}

// Serve runs the cache, and its debug server if http.debug.addr is set, until ctx is done. Then
// Serve accepts no more connections, and running requests may continue for http.draintimeout. If
// some take longer, Serve cuts them and returns an error. Serve sends nothing to the upstream
// before the first request of a client. It returns a *store.NotCacheError if the volume belongs to
// a registry that might not be a cache.
func Serve(ctx context.Context, config *Config, log io.Writer) (err error) {
	startLog(config, log)
	var certificate *tls.Certificate
	if files := config.HTTP.TLS; files.Certificate != "" {
		pair, err := tls.LoadX509KeyPair(files.Certificate, files.Key)
		if err != nil {
			return &StartError{fmt.Errorf("http.tls: %w", err)}
		}
		certificate = &pair
	}
	var replicas *upstream.Replicas
	if config.Cache.Peers != "" {
		replicas = upstream.NewReplicas(upstream.ReplicaOptions{Address: config.Cache.Peers, Namespace: config.Cache.Upstream, Certificate: certificate})
	}
	i, err := open(context.WithoutCancel(ctx), config, nil, replicas)
	if _, refused := errors.AsType[*store.NotCacheError](err); refused {
		return fmt.Errorf("storage.filesystem.rootdirectory: %w", err)
	}
	if err != nil {
		return &StartError{err}
	}
	defer i.close()
	watching, stop := context.WithCancel(ctx)
	defer stop()
	go i.volume.Watch(watching)
	return serve(ctx, config, i, certificate)
}

// startLog makes this process log to a writer.
func startLog(config *Config, to io.Writer) {
	level := slog.LevelInfo
	_ = level.UnmarshalText([]byte(config.Log.Level)) // an unknown level counts as info
	logger := slog.New(slog.NewTextHandler(to, &slog.HandlerOptions{Level: level}))
	for key, value := range config.Log.Fields {
		logger = logger.With(key, value)
	}
	slog.SetDefault(logger)
	log.SetOutput(io.Discard) // net/http would log what a token server sends after its answer
}

// instance is a cache without its servers.
type instance struct {
	http.Handler
	volume *store.Store
	close  func() // cancels all downloads; partial blobs stay on the volume
}

// open opens the volume and returns a cache. It connects to the upstream with dial. dial and
// replicas may be nil.
func open(ctx context.Context, config *Config, dial upstream.Dial, replicas *upstream.Replicas) (*instance, error) {
	remote, err := url.Parse(config.Proxy.RemoteURL)
	if err != nil {
		return nil, errors.New("proxy.remoteurl is not a URL") // the cause would repeat the URL, which may contain a password
	}
	asking := upstream.Options{URL: remote, Dial: dial}
	if asking.Roots, err = trustedCAs(); err != nil {
		return nil, err
	}
	if err := config.credentials(&asking); err != nil {
		return nil, err
	}
	volume, err := store.New(config.Storage.Filesystem.RootDirectory, config.Cache.Owned)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	c := cache.New(cache.Options{
		Store: volume, Upstream: upstream.New(ctx, asking), Replicas: replicas, TTL: *config.Proxy.TTL, Limit: config.Limit,
	})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.Run(ctx)
	}()
	h := &handler{
		cache: c, upstream: config.Cache.Upstream, headers: config.headers(), patience: config.Cache.ClientTimeout,
		works: volume.Works, large: semaphore.NewWeighted(cache.MostLarge),
	}
	return &instance{h, volume, func() {
		c.Close()
		stop()
		<-ended
		_ = volume.Close()
	}}, nil
}

const (
	readHeaderTimeout = 10 * time.Second
	idleTimeout       = 2 * time.Minute
	largestHeader     = 64 << 10
	// healthTime is the timeout for connecting to the cache's own port, and then for its answer. The
	// result is reused for a second.
	healthTime = time.Second
)

// serve runs the server for clients, with TLS if certificate is not nil, and the debug server.
func serve(ctx context.Context, config *Config, i *instance, certificate *tls.Certificate) error {
	ended := make(chan error, 2)
	listener, err := listen(ctx, "cache", config.HTTP.Addr)
	if err != nil {
		return err
	}
	if address := config.HTTP.Debug.Addr; address != "" {
		health := &health{works: i.volume.Works, certificate: certificate, address: listener.Addr().String()}
		debug := debugServer(config, health)
		listener, err := listen(ctx, "debug server", address)
		if err != nil {
			return err
		}
		defer func() { _ = debug.Close() }()
		go func() { ended <- debug.Serve(listener) }()
	}
	main := &http.Server{
		Handler: i, ReadHeaderTimeout: readHeaderTimeout, IdleTimeout: idleTimeout, ConnContext: withConnection,
		MaxHeaderBytes: largestHeader,
		ErrorLog:       slog.NewLogLogger(slog.Default().Handler(), slog.LevelDebug), // errors of clients, such as failed handshakes
	}
	go func() {
		if certificate != nil {
			main.TLSConfig = &tls.Config{Certificates: []tls.Certificate{*certificate}, MinVersion: tls.VersionTLS12}
			ended <- main.ServeTLS(listener, "", "")
		} else {
			ended <- main.Serve(listener)
		}
	}()
	drain := config.HTTP.DrainTimeout
	select {
	case err := <-ended:
		return errors.Join(&StartError{err}, shutdown(ctx, main, drain))
	case <-ctx.Done():
		slog.Info("stopping: running requests may continue", "for", drain)
		return shutdown(ctx, main, drain)
	}
}

func listen(ctx context.Context, what, address string) (net.Listener, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, &StartError{err}
	}
	slog.Info(what + " listening on " + listener.Addr().String())
	return listener, nil
}

// shutdown lets running requests continue for drain, even if ctx is done. If some take longer, it
// cuts them and returns an error.
func shutdown(ctx context.Context, server *http.Server, drain time.Duration) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer cancel()
	err := server.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		return errors.Join(
			fmt.Errorf("requests were cut after the drain timeout of %s: %w", drain, err), server.Close())
	}
	return err
}

// health checks whether the cache can serve: its disk responds, its certificate is valid, and its
// port answers.
type health struct {
	works       func() context.Context
	certificate *tls.Certificate // nil without TLS
	address     string           // of the cache's own port

	mu      sync.Mutex
	checked time.Time
	err     error
}

// check returns the reason why nodes should not use this cache, or nil. Callers share one check of
// the port.
func (h *health) check(ctx context.Context) error {
	if err := context.Cause(h.works()); err != nil { //nolint:contextcheck // this is the disk's context
		return err
	}
	if h.certificate != nil && time.Now().After(h.certificate.Leaf.NotAfter) {
		return errors.New("the certificate has expired")
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if time.Since(h.checked) > healthTime {
		h.err = answers(ctx, h.address)
		h.checked = time.Now()
	}
	return h.err
}

// answers returns an error if the server at address does not answer. A server with TLS answers
// plain HTTP with 400, which suffices.
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

// debugServer returns the server for nodes, the kubelet and Prometheus. It serves /debug/health, as
// a stock image does, and metrics.
func debugServer(config *Config, h *health) *http.Server {
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
	return &http.Server{Handler: mux, ReadTimeout: readHeaderTimeout, WriteTimeout: readHeaderTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: largestHeader}
}
