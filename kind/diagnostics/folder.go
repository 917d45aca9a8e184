package diagnostics

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

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
// failure. Empty content is stored too, since it is evidence that there was nothing.
func (f *Folder) Write(name string, content []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return
	}
	path := filepath.Join(f.dir, f.name, name)
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	err = errors.Join(err, os.WriteFile(path, content, 0o644))
	if err != nil {
		f.failures = append(f.failures, fmt.Errorf("%s: %w", filepath.Join(f.name, name), err))
		return
	}
	f.files = append(f.files, file{name, len(content)})
}

// Fail records that a file could not be collected. The name may be empty. A nil error is ignored.
func (f *Folder) Fail(name string, err error) {
	if err == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.closed {
		f.failures = append(f.failures, fmt.Errorf("%s: %w", filepath.Join(f.name, name), err))
	}
}

// close makes all later calls of Write and Fail do nothing.
func (f *Folder) close(took time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed, f.seconds = true, took.Seconds()
	slices.SortFunc(f.files, func(a, b file) int { return cmp.Compare(a.name, b.name) })
}
