package server

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/distribution/distribution/v3/configuration"
	"github.com/distribution/distribution/v3/registry/handlers"
	_ "github.com/distribution/distribution/v3/registry/storage/driver/filesystem" // the storage driver that settings names

	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

// Middleware stands between the access log and the registry: what it does to an answer is recorded as it went over the
// wire.
type Middleware func(http.Handler) http.Handler

// settings in distribution's own format. URLs in answers are relative because the registry is reached under several
// names: its own, and a port on localhost for pushes.
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

// protection is added to the settings of a registry that asks for credentials.
const protection = `
auth:
  ` + accessType + `:
    path: %q
`

// NewHandler returns a registry that stores below the directory storage and writes an accesslog.Record per request to
// log. If credentials is the path of a credentials file, it asks its clients for what is in there at the time; without
// the file it lets nobody in. The first middleware is the outermost one. The registry stops its background work when ctx
// ends.
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
		// handlers.NewApp (distribution v3.1.2) has no error result; it panics.
		if cause := recover(); cause != nil {
			err = fmt.Errorf("start registry in %s: %v", storage, cause)
		}
	}()
	var handler http.Handler = handlers.NewApp(ctx, config)
	for i := len(middlewares) - 1; i >= 0; i-- {
		handler = middlewares[i](handler)
	}
	return accesslog.NewLog(log).Handler(handler), nil
}
