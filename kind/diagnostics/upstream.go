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
	// Status returns the status of its container, as the engine prints it.
	Status() string
	// Output copies the output of its container. Standard output is the access log.
	Output(ctx context.Context, stdout, stderr io.Writer) error
}

// Upstream returns a source for one upstream: the state of its container, its access log with one
// JSON record per line, and its messages.
func Upstream(r Registry) Source { return registry{r} }

type registry struct{ Registry }

func (r registry) Name() string { return path.Join(bundle.UpstreamFolder, r.Host()) }

func (r registry) Collect(ctx context.Context, into *Folder) {
	var access, messages bytes.Buffer
	state := r.Status()
	if err := r.Output(ctx, &access, &messages); err != nil { // the container may be deleted by now
		into.Fail(bundle.AccessFile, err)
		state = bundle.Unreadable + err.Error()
	}
	into.Write(bundle.StateFile, []byte(state+"\n"))
	into.Write(bundle.AccessFile, access.Bytes())
	into.Write("messages.log", messages.Bytes())
}
