package registry

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/gardener-extensions/registry-cache/registry/cache"
	"github.com/gardener-extensions/registry-cache/registry/fetch"
	"github.com/gardener-extensions/registry-cache/registry/peer"
	"github.com/gardener-extensions/registry-cache/registry/probe"
	"github.com/gardener-extensions/registry-cache/registry/store"
	"github.com/gardener-extensions/registry-cache/registry/upstream"
)

// StartError says that the cache could not start, such as an address in use or an unusable volume.
type StartError struct{ cause error }

// Error implements error.
func (e *StartError) Error() string { return "cannot start the cache: " + e.cause.Error() }

func (e *StartError) Unwrap() error { return e.cause }

// EnvironmentError marks the error: the same start may succeed later.
func (e *StartError) EnvironmentError() {}

// Serve runs the cache, and its debug server if http.debug.addr is set, until ctx is done. Then it
// takes no more connections, and running requests may continue for http.draintimeout. Requests that
// take longer are cut and reported as an error. Logs go to log. It sends nothing to the upstream
// before a client asks for something. A *store.NotCacheError says that the volume may not be a
// cache's.
func Serve(ctx context.Context, config *Config, log io.Writer) (err error) {
	startLog(config, log)
	volume, err := store.New(config.Storage.Filesystem.RootDirectory, config.Cache.Owned)
	if _, refused := errors.AsType[*store.NotCacheError](err); refused {
		return fmt.Errorf("storage.filesystem.rootdirectory: %w", err)
	}
	if err != nil {
		return &StartError{err}
	}
	defer func() { _ = volume.Close() }()
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	certificate, err := config.certificate()
	if err != nil {
		return &StartError{err}
	}
	options, err := options(background, config, volume, certificate)
	if err != nil {
		return &StartError{err}
	}
	c := cache.New(options)
	defer c.Close()
	handler, err := newHandler(background, config, c)
	if err != nil {
		return &StartError{err}
	}
	evicting := make(chan struct{})
	go func() { c.Run(background); close(evicting) }()
	defer func() { stop(); <-evicting }()
	return serve(ctx, config, handler, certificate)
}

func options(ctx context.Context, config *Config, volume *store.Store, certificate *tls.Certificate) (o cache.Options, err error) {
	remote, err := url.Parse(config.Proxy.RemoteURL)
	if err != nil {
		return o, errors.New("proxy.remoteurl is no URL") // the cause would repeat a password in it
	}
	roots, err := trustedCAs()
	if err != nil {
		return o, err
	}
	client, err := upstream.New(ctx, upstream.Options{
		URL: remote, Username: config.Proxy.Username, Password: config.Proxy.Password, Roots: roots,
	})
	if err != nil {
		return o, err
	}
	up, others := fetch.Upstream(client), fetch.Upstream(nil)
	if config.Cache.Peers != "" {
		replicas := peer.Options{Address: config.Cache.Peers, Namespace: config.Cache.Upstream, Certificate: certificate}
		peers := peer.New(client, replicas)
		up, others = peers, peers.Only()
	}
	return cache.Options{
		Store: volume, Upstream: up, Replicas: others, Credentials: config.Proxy.Username != "", TTL: *config.Proxy.TTL, Limit: config.Cache.Limit,
	}, nil
}

const (
	readHeaderTimeout = 10 * time.Second
	idleTimeout       = 2 * time.Minute
)

// serve runs the server for clients, with TLS if there is a certificate, and the debug server.
func serve(ctx context.Context, config *Config, handler http.Handler, certificate *tls.Certificate) error {
	ended := make(chan error, 2)
	main := &http.Server{Handler: handler, ReadHeaderTimeout: readHeaderTimeout, IdleTimeout: idleTimeout}
	if address := config.HTTP.Debug.Addr; address != "" {
		debug := &http.Server{Handler: debugHandler(config), ReadHeaderTimeout: readHeaderTimeout}
		listener, err := listen(ctx, "debug server", address)
		if err != nil {
			return err
		}
		defer func() { _ = debug.Close() }()
		go func() { ended <- debug.Serve(listener) }()
	}
	listener, err := listen(ctx, "cache", config.HTTP.Addr)
	if err != nil {
		return err
	}
	listener = probe.Listen(listener, config.HTTP.Headers, certificate)
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

// shutdown also works when ctx has ended.
func shutdown(ctx context.Context, server *http.Server, drain time.Duration) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer cancel()
	err := server.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		return errors.Join(
			fmt.Errorf("requests that ran longer than the drain timeout of %s were cut: %w", drain, err), server.Close())
	}
	return err
}
