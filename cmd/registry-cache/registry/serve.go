package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/distribution/distribution/v3/configuration"
	"github.com/distribution/distribution/v3/registry"
	"github.com/sirupsen/logrus"

	"github.com/gardener-extensions/registry-cache/cmd/registry-cache/registry/fetch"
)

// StartError says that the registry could not start, such as an address in use or an unusable storage directory.
type StartError struct{ cause error }

func (e *StartError) Error() string { return "cannot start the registry: " + e.cause.Error() }

func (e *StartError) Unwrap() error { return e.cause }

// EnvironmentError says that the surroundings are the cause: the same start may succeed later.
func (e *StartError) EnvironmentError() {}

// Serve runs the registry, and its debug server if http.debug.addr is set, until ctx is done. Then it takes no more
// connections, lets running requests go on for http.draintimeout and saves the expiry times of what is cached; requests
// that take longer are cut and reported as an error. Logs go to log.
//
// An upstream that does not answer keeps the registry from nothing but what is not stored. If it turns out to want tokens when
// it answers again, and there are credentials, Serve ends without an error: with the next start, which is up to the caller,
// the registry knows where to get them.
func Serve(ctx context.Context, config *configuration.Configuration, log io.Writer) error {
	logrus.SetOutput(log)
	drain := config.HTTP.DrainTimeout
	if drain <= 0 {
		drain = defaultDrainTimeout
	}
	config.HTTP.DrainTimeout = 0 // otherwise distribution catches SIGTERM itself; here ctx ends the registry
	if _, set := os.LookupEnv("OTEL_TRACES_EXPORTER"); !set {
		// Without a value OpenTelemetry sends traces to localhost:4318, where nobody listens in a pod.
		if err := os.Setenv("OTEL_TRACES_EXPORTER", "none"); err != nil {
			return &StartError{err}
		}
	}

	repairState(ctx, config, time.Now())
	if err := useSoundStore(config); err != nil {
		return &StartError{err}
	}
	if err := fetch.Use(config, storeFolder(config)); err != nil { // after the sound store: what is damaged has to be fetched
		return &StartError{err}
	}
	if err := useUpstreamTransport(); err != nil {
		return &StartError{err}
	}
	remote, err := url.Parse(config.Proxy.RemoteURL)
	if err != nil {
		return &StartError{err}
	}
	pings := &pinger{next: http.DefaultTransport, remote: remote}
	http.DefaultTransport = pings
	instance, err := start(ctx, config)
	if err != nil || instance == nil {
		return err
	}
	var tokens <-chan struct{}
	if pings.start() && config.Proxy.Username != "" {
		tokens = pings.awaitTokens(ctx)
	}
	debug, err := startDebugServer(ctx, config.HTTP.Debug)
	if err != nil {
		return errors.Join(&StartError{err}, shutdown(ctx, instance, drain))
	}
	defer debug.Close()

	served := make(chan error, 1)
	go func() { served <- instance.ListenAndServe() }()
	select {
	case err := <-served:
		return errors.Join(&StartError{err}, shutdown(ctx, instance, drain))
	case err := <-debug.failed:
		return errors.Join(fmt.Errorf("the debug server ended: %w", err), shutdown(ctx, instance, drain))
	case <-tokens:
		logrus.Info("stopping: the upstream answers again, and the next start learns where its tokens come from")
		return shutdown(ctx, instance, drain)
	case <-ctx.Done():
		logrus.Infof("stopping: running requests may go on for %s", drain)
		return shutdown(ctx, instance, drain)
	}
}

// start creates the registry. It returns neither a registry nor an error if ctx ends first: distribution asks its upstream
// without a context.
func start(ctx context.Context, config *configuration.Configuration) (*registry.Registry, error) {
	type result struct {
		instance *registry.Registry
		err      error
	}
	created := make(chan result, 1)
	go func() {
		// Distribution's handlers work with this context until they are drained, so it must not end with ctx.
		instance, err := create(context.WithoutCancel(ctx), config)
		created <- result{instance, err}
	}()
	select {
	case result := <-created:
		return result.instance, result.err
	case <-ctx.Done():
		return nil, nil
	}
}

// create turns distribution's panics about wrong configuration into errors.
func create(ctx context.Context, config *configuration.Configuration) (instance *registry.Registry, err error) {
	defer func() {
		if reason := recover(); reason != nil {
			instance, err = nil, &StartError{fmt.Errorf("%v", reason)}
		}
	}()
	instance, err = registry.NewRegistry(ctx, config)
	if err != nil {
		return nil, &StartError{err}
	}
	return instance, nil
}

// shutdown also works when ctx has ended.
func shutdown(ctx context.Context, instance *registry.Registry, drain time.Duration) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer cancel()
	err := instance.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("requests that ran longer than the drain timeout of %s were cut: %w", drain, err)
	}
	if err != nil && !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("cannot stop the registry cleanly: %w", err)
	}
	return nil
}
