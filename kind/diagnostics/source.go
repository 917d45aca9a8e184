package diagnostics

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/gardener-extensions/registry-cache/kind/diagnostics/bundle"
)

// Source collects from one node, cluster or upstream.
type Source struct {
	// Name is the folder of the source, for example "node/registry-cache-shoot-worker". The files of a
	// source with an empty name are next to the index.
	Name string
	// Collect writes files and records failures. It should return when ctx ends.
	Collect func(ctx context.Context, into *Folder)
}

// Folder stores the files of one source. Its methods may be called concurrently.
type Folder struct {
	dir, name string

	mu       sync.Mutex
	closed   bool
	seconds  float64
	files    []file
	failures []error
}

// file describes one stored file. The index has a line for it.
type file struct {
	name string // relative to the folder
	size int
}

// Write stores a file. The name may contain folders. If the file cannot be stored, Write records a
// failure. It stores empty content too: this shows that there was nothing.
func (f *Folder) Write(name string, content []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return
	}
	path := filepath.Join(f.dir, f.name, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, content, 0o644)); err != nil {
		f.failures = append(f.failures, fmt.Errorf("%s: %w", filepath.Join(f.name, name), err))
		return
	}
	f.files = append(f.files, file{name, len(content)})
}

// Fail records that a file could not be collected. An empty name means the whole source. Fail
// ignores a nil error.
func (f *Folder) Fail(name string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil && !f.closed {
		f.failures = append(f.failures, fmt.Errorf("%s: %w", filepath.Join(f.name, name), err))
	}
}

// store writes the content of a file, even if an error made it incomplete, and records the error.
func (f *Folder) store(name string, content []byte, err error) {
	f.Fail(name, err)
	if err == nil || len(content) > 0 {
		f.Write(name, content)
	}
}

// close makes all later calls of Write and Fail do nothing.
func (f *Folder) close(took time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed, f.seconds = true, took.Seconds()
	slices.SortFunc(f.files, func(a, b file) int { return cmp.Compare(a.name, b.name) })
}

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
		defer func() { _ = file.Close() }() // the file was only read
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
