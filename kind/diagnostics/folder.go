package diagnostics

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// Folder takes the files of one source. Its methods may be called concurrently.
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

// Write stores a file; name may have folders of its own. A file that cannot be stored is noted as a failure. Empty
// content is stored too: that there was nothing is evidence.
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

// Fail notes that something could not be had; name may be empty. A nil error is ignored.
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

// close ends the collection; nothing changes the folder afterwards.
func (f *Folder) close(took time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed, f.seconds = true, took.Seconds()
	slices.SortFunc(f.files, func(a, b file) int {
		if a.name < b.name {
			return -1
		}
		return 1
	})
}
