package server

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/distribution/distribution/v3/configuration"
	"github.com/distribution/distribution/v3/registry/handlers"
	_ "github.com/distribution/distribution/v3/registry/storage/driver/filesystem" // the storage driver that settings names

	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

// Middleware is between access log and registry. The log records responses as it changes them.
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

// protection is appended to the settings of a registry with credentials.
const protection = `
auth:
  ` + accessType + `:
    path: %q
`

// NewHandler returns a registry that stores below the directory storage and writes an
// accesslog.Record per request to log. If credentials is not empty, clients must present
// credentials in the file at that path; without the file all clients are rejected. The first
// middleware is the outermost. The registry stops its background work when ctx ends.
func NewHandler(ctx context.Context, storage, credentials string, log io.Writer, middlewares ...Middleware) (_ http.Handler, err error) {
	text := fmt.Sprintf(settings, storage)
	if credentials != "" {
		text += fmt.Sprintf(protection, credentials)
	}
	config, err := configuration.Parse(strings.NewReader(text))
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
