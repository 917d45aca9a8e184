package diagnostics

import (
	"bytes"
	"context"
	"io"
	"path"

	"github.com/gardener-extensions/registry-cache/kind/diagnostics/bundle"
)

// Registry is an upstream registry, for example an upstream.Registry.
type Registry interface {
	Host() string
	// Status is what the engine says of its container.
	Status() string
	// Output copies what it printed, the access log to stdout.
	Output(ctx context.Context, stdout, stderr io.Writer) error
}

// Upstream returns the state of an upstream's container, its access log, one JSON record a line, and its messages.
func Upstream(r Registry) Source { return registry{r} }

type registry struct{ Registry }

func (r registry) Name() string { return path.Join(bundle.UpstreamFolder, r.Host()) }

func (r registry) Collect(ctx context.Context, into *Folder) {
	var access, messages bytes.Buffer
	state := r.Status()
	if err := r.Output(ctx, &access, &messages); err != nil { // it may be gone since it was looked for
		into.Fail(bundle.AccessFile, err)
		state = bundle.Unreadable + err.Error()
	}
	into.Write(bundle.StateFile, []byte(state+"\n"))
	into.Write(bundle.AccessFile, access.Bytes())
	into.Write("messages.log", messages.Bytes())
}
