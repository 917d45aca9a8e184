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
	"sync"
	"time"

	"github.com/gardener-extensions/registry-cache/registry/cache"
	"github.com/gardener-extensions/registry-cache/registry/replica"
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
	certificate, err := config.certificate()
	if err != nil {
		return &StartError{err}
	}
	i, err := open(context.WithoutCancel(ctx), config, nil)
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

// startLog lets this process log to the writer.
func startLog(config *Config, to io.Writer) {
	level := slog.LevelInfo
	_ = level.UnmarshalText([]byte(config.Log.Level)) // info for a level of distribution that is unknown here
	logger := slog.New(slog.NewTextHandler(to, &slog.HandlerOptions{Level: level}))
	for key, value := range config.Log.Fields {
		logger = logger.With(key, value)
	}
	slog.SetDefault(logger)
}

// instance is a cache without its ports.
type instance struct {
	http.Handler
	volume *store.Store
	cache  *cache.Cache
	stop   context.CancelFunc
	ended  sync.WaitGroup
}

// open returns a cache on its volume. It connects to the upstream with dial, which may be nil.
func open(ctx context.Context, config *Config, dial upstream.Dial) (*instance, error) {
	certificate, err := config.certificate()
	if err != nil {
		return nil, err
	}
	var replicas *replica.Options
	if config.Cache.Peers != "" {
		replicas = &replica.Options{Address: config.Cache.Peers, Namespace: config.Cache.Upstream, Certificate: certificate, Dial: dial}
	}
	return openWith(ctx, config, dial, replicas)
}

func openWith(ctx context.Context, config *Config, dial upstream.Dial, others *replica.Options) (*instance, error) {
	remote, err := url.Parse(config.Proxy.RemoteURL)
	if err != nil {
		return nil, errors.New("proxy.remoteurl is no URL") // the cause would repeat a password in it
	}
	roots, err := trustedCAs()
	if err != nil {
		return nil, err
	}
	var replicas *replica.Replicas
	if others != nil {
		replicas = replica.New(*others)
	}
	asking := upstream.Options{URL: remote, Roots: roots, Dial: dial}
	if err := config.credentials(&asking); err != nil {
		return nil, err
	}
	i := &instance{}
	if i.volume, err = store.New(config.Storage.Filesystem.RootDirectory, config.Cache.Owned); err != nil {
		return nil, err
	}
	ctx, i.stop = context.WithCancel(ctx)
	i.cache = cache.New(cache.Options{
		Store: i.volume, Upstream: upstream.New(ctx, asking), Replicas: replicas, TTL: *config.Proxy.TTL, Limit: config.Limit,
	})
	health := &health{works: i.volume.Works}
	i.Handler = &handler{
		cache: i.cache, upstream: config.Cache.Upstream, headers: config.headers(), patience: config.Cache.ClientTimeout,
		healthy: health.disk, works: i.volume.Works, large: make(chan struct{}, mostLarge),
	}
	i.ended.Go(func() { i.cache.Run(ctx) })
	return i, nil
}

// close ends all downloads. What has arrived stays on the volume.
func (i *instance) close() {
	i.cache.Close()
	i.stop()
	i.ended.Wait()
	_ = i.volume.Close()
}

const (
	readHeaderTimeout = 10 * time.Second
	idleTimeout       = 2 * time.Minute
)

// serve runs the server for clients, with TLS if there is a certificate, and the debug server.
func serve(ctx context.Context, config *Config, i *instance, certificate *tls.Certificate) error {
	ended := make(chan error, 2)
	listener, err := listen(ctx, "cache", config.HTTP.Addr)
	if err != nil {
		return err
	}
	if address := config.HTTP.Debug.Addr; address != "" {
		health := &health{works: i.volume.Works, certificate: certificate, address: listener.Addr().String()}
		debug := &http.Server{Handler: debugHandler(config, health), ReadHeaderTimeout: readHeaderTimeout, IdleTimeout: idleTimeout}
		listener, err := listen(ctx, "debug server", address)
		if err != nil {
			return err
		}
		defer func() { _ = debug.Close() }()
		go func() { ended <- debug.Serve(listener) }()
	}
	main := &http.Server{
		Handler: i, ReadHeaderTimeout: readHeaderTimeout, IdleTimeout: idleTimeout, ConnContext: withConnection,
		MaxHeaderBytes: 64 << 10,
		ErrorLog:       slog.NewLogLogger(slog.Default().Handler(), slog.LevelDebug), // of clients, such as failed handshakes
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
