package registry

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"

	"github.com/distribution/distribution/v3/configuration"
	"github.com/distribution/distribution/v3/health"
	"github.com/distribution/distribution/v3/registry/handlers"
	_ "github.com/distribution/distribution/v3/registry/storage/driver/filesystem" // storage: filesystem
	"github.com/sirupsen/logrus"

	"github.com/gardener-extensions/registry-cache/registry/cache"
	"github.com/gardener-extensions/registry-cache/registry/namespace"
	"github.com/gardener-extensions/registry-cache/registry/probe"
)

// newHandler returns distribution's HTTP layer, in read-only mode and without its own pull-through.
// It turns distribution's panics about wrong configuration into errors.
func newHandler(ctx context.Context, config *Config, c *cache.Cache) (_ http.Handler, err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("%v", reason)
		}
	}()
	below := &configuration.Configuration{}
	below.HTTP.Secret = rand.Text() // for uploads, which are refused
	below.HTTP.Headers = config.HTTP.Headers
	below.HTTP.Debug.Prometheus.Enabled = config.HTTP.Debug.Prometheus.Enabled
	below.Health.StorageDriver = config.Health.StorageDriver
	below.Storage = configuration.Storage{
		"filesystem": configuration.Parameters{"rootdirectory": config.Storage.Filesystem.RootDirectory},
		"maintenance": configuration.Parameters{
			"uploadpurging": map[any]any{"enabled": false}, "readonly": map[any]any{"enabled": true},
		},
	}
	below.Middleware = map[string][]configuration.Middleware{"registry": {namespace.Use(c)}}
	app := handlers.NewApp(ctx, below)
	if config.Health.StorageDriver.Enabled { // once in a process
		app.RegisterHealthChecks()
	}
	logged := namespace.Handler(config.Cache.ClientTimeout, onlyPulls(config.Cache.Upstream, health.Handler(app)))
	return probe.Handler(config.HTTP.Headers, logged), nil
}

// onlyPulls refuses what a cache does not serve. For another registry the answer is 404, so that
// containerd goes on: a node that still knows the address of a deleted cache may reach this one.
func onlyPulls(upstream string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		wanted := r.URL.Query().Get("ns") // containerd: the registry in the reference of the image
		switch {
		case wanted != "" && upstream != "" && wanted != upstream:
			http.Error(w, fmt.Sprintf("this is a cache of %s, not of %s", upstream, wanted), http.StatusNotFound)
		case strings.HasPrefix(r.URL.Path, "/v2/_catalog"):
			http.Error(w, "a cache has no catalog: ask the upstream", http.StatusMethodNotAllowed)
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			http.Error(w, "a cache is read-only", http.StatusMethodNotAllowed)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// startLog lets this process log to the writer, without distribution's own (second) access log.
func startLog(config *Config, to io.Writer) {
	level := slog.LevelInfo
	_ = level.UnmarshalText([]byte(config.Log.Level)) // info for a level of distribution that is unknown here
	logger := slog.New(slog.NewTextHandler(to, &slog.HandlerOptions{Level: level}))
	for key, value := range config.Log.Fields {
		logger = logger.With(key, value)
	}
	slog.SetDefault(logger)
	logrus.SetOutput(io.Discard)
	if _, set := os.LookupEnv("OTEL_TRACES_EXPORTER"); !set {
		// Without a value OpenTelemetry sends traces to localhost:4318, where nothing listens in a pod.
		_ = os.Setenv("OTEL_TRACES_EXPORTER", "none")
	}
}
