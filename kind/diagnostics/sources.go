package diagnostics

import (
	"bytes"
	"context"
	"io"
	"os"
	"path"

	"github.com/gardener-extensions/registry-cache/kind/diagnostics/bundle"
)

// Text returns a source with one file next to the index, for example Text("versions.txt", "…").
func Text(name, content string) Source {
	return Computed(name, func(context.Context) ([]byte, error) { return []byte(content), nil })
}

// Computed returns a source with one file next to the index. Content that is returned together with
// an error is stored too.
func Computed(name string, content func(context.Context) ([]byte, error)) Source {
	return Source{Collect: func(ctx context.Context, into *Folder) {
		text, err := content(ctx)
		into.store(name, text, err)
	}}
}

// tailBytes limits what Tail keeps of a file.
const tailBytes = 4 << 20

// Tail returns a source with the last 4 MiB of a local file. A missing file counts as empty.
func Tail(name, path string) Source {
	return Computed(name, func(context.Context) ([]byte, error) {
		file, err := os.Open(path)
		if os.IsNotExist(err) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		defer func() { _ = file.Close() }() // opened for reading
		info, err := file.Stat()
		if err != nil {
			return nil, err
		}
		return io.ReadAll(io.NewSectionReader(file, max(0, info.Size()-tailBytes), tailBytes))
	})
}

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
func Upstream(r Registry) Source {
	return Source{path.Join(bundle.UpstreamFolder, r.Host()), func(ctx context.Context, into *Folder) {
		var access, messages bytes.Buffer
		state := r.Status()
		if err := r.Output(ctx, &access, &messages); err != nil { // the container may be deleted by now
			into.Fail(bundle.AccessFile, err)
			state = bundle.Unreadable + err.Error()
		}
		into.Write(bundle.StateFile, []byte(state+"\n"))
		into.Write(bundle.AccessFile, access.Bytes())
		into.Write("messages.log", messages.Bytes())
	}}
}
