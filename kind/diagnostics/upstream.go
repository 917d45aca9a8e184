package diagnostics

import (
	"bytes"
	"context"
	"io"
	"path"
)

// Registry is an upstream registry, for example an upstream.Registry.
type Registry interface {
	Host() string
	// Output copies what it printed, the access log to stdout.
	Output(ctx context.Context, stdout, stderr io.Writer) error
}

// Upstream returns the access log of an upstream, one JSON record a line, and its messages.
func Upstream(r Registry) Source { return registry{r} }

type registry struct{ Registry }

func (r registry) Name() string { return path.Join("upstream", r.Host()) }

func (r registry) Collect(ctx context.Context, into *Folder) {
	var access, messages bytes.Buffer
	into.Fail("access.jsonl", r.Output(ctx, &access, &messages))
	into.Write("access.jsonl", access.Bytes())
	into.Write("messages.log", messages.Bytes())
}

// Text returns a source of one file beside the index that is already known, for example Text("versions.txt", "…").
func Text(name, content string) Source { return text{name, content} }

type text struct{ file, content string }

func (t text) Name() string { return "" }

func (t text) Collect(_ context.Context, into *Folder) { into.Write(t.file, []byte(t.content)) }
