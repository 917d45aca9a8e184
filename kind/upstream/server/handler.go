package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/distribution/distribution/v3/configuration"
	"github.com/distribution/distribution/v3/registry/handlers"
	_ "github.com/distribution/distribution/v3/registry/storage/driver/filesystem" // the storage driver in settings
	"github.com/sirupsen/logrus"
	"golang.org/x/sync/errgroup"

	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

// Middleware wraps the registry. The access log wraps the middleware, so the records show the
// responses as the middleware has changed them.
type Middleware func(http.Handler) http.Handler

// settings is distribution's configuration. URLs in responses are relative, because the registry
// has several names: its host name, and a port on localhost for pushes.
const settings = `
version: 0.1
storage:
  filesystem:
    rootdirectory: %q
  delete:
    enabled: true
http:
  relativeurls: true
`

// NewHandler returns a registry that stores images below the directory storage. For each request it
// writes an accesslog.Record to the writer log. The first middleware is the outermost. The registry
// stops its background work when ctx ends.
func NewHandler(ctx context.Context, storage string, log io.Writer, middlewares ...Middleware) (_ http.Handler, err error) {
	config, err := configuration.Parse(strings.NewReader(fmt.Sprintf(settings, storage)))
	if err != nil {
		return nil, fmt.Errorf("registry configuration: %w", err)
	}
	defer func() {
		// handlers.NewApp (distribution v3.1.2) returns no error; it panics.
		if cause := recover(); cause != nil {
			err = fmt.Errorf("start registry in %s: %v", storage, cause)
		}
	}()
	var handler http.Handler = handlers.NewApp(ctx, config)
	for _, middleware := range slices.Backward(middlewares) {
		handler = middleware(handler)
	}
	return accesslog.NewLog(log).Handler(handler), nil
}

// Paths and ports inside the container, shared with package upstream.
const (
	HTTP        = 80
	HTTPS       = 443
	ProxyPort   = 3128
	Storage     = "/var/lib/registry"
	Certificate = "/etc/upstream/tls.crt"
	Key         = "/etc/upstream/tls.key"
	// FaultsFile and ECRFile are in a folder that the program can write to. Both may be missing.
	FaultsFile = "/var/lib/upstream/faults.json"
	ECRFile    = "/var/lib/upstream/ecr.json"
)

// Run serves until ctx ends and then shuts down gracefully. It returns an error if it cannot serve
// a port. It writes one access record per request to log.
func Run(ctx context.Context, sites Sites, log io.Writer) error {
	logrus.SetLevel(logrus.WarnLevel) // otherwise distribution logs every request to stderr
	handler, err := NewHandler(ctx, Storage, log, sellTokens(ECRFile), Faults(FaultsFile, sites))
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, port := range []int{HTTP, OtherHTTP} {
		plain := &http.Server{Addr: ":" + strconv.Itoa(port), Handler: handler, ReadHeaderTimeout: time.Minute}
		group.Go(func() error { return Serve(ctx, plain, plain.ListenAndServe) })
	}
	for _, port := range []int{HTTPS, OtherHTTPS} {
		secure := &http.Server{Addr: ":" + strconv.Itoa(port), Handler: handler, ReadHeaderTimeout: time.Minute}
		group.Go(func() error {
			return Serve(ctx, secure, func() error { return secure.ListenAndServeTLS(Certificate, Key) })
		})
	}
	return group.Wait()
}

// Serve runs listen, a method of the server, until ctx ends, and then shuts down gracefully: it
// waits up to 3 s for running requests.
func Serve(ctx context.Context, server *http.Server, listen func() error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		if err := listen(); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve %s: %w", server.Addr, err)
		}
		return nil
	})
	group.Go(func() error {
		<-ctx.Done()
		bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Second)
		defer cancel()
		return server.Shutdown(bound)
	})
	return group.Wait()
}
