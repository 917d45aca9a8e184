package diagnostics

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
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

// file is a line of the index.
type file struct {
	name string // relative to the folder
	size int
}

// Write stores a file. The name may contain folders. A file that cannot be stored becomes a
// failure. Empty content is stored too: it shows that there was nothing.
func (f *Folder) Write(name string, content []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return
	}
	path := filepath.Join(f.dir, f.name, name)
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err = errors.Join(err, os.WriteFile(path, content, 0o644)); err != nil {
		f.failures = append(f.failures, fmt.Errorf("%s: %w", filepath.Join(f.name, name), err))
		return
	}
	f.files = append(f.files, file{name, len(content)})
}

// Fail records that a file could not be collected. The name may be empty. A nil error is ignored.
func (f *Folder) Fail(name string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil && !f.closed {
		f.failures = append(f.failures, fmt.Errorf("%s: %w", filepath.Join(f.name, name), err))
	}
}

// store writes what was read of a file, also if the rest of it failed, and records the failure.
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
