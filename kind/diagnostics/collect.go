package diagnostics

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// sourceTimeout bounds one source, grace how much longer one may take to notice.
	sourceTimeout = time.Minute
	grace         = 5 * time.Second
	// concurrency keeps a small machine usable: collecting is mostly waiting.
	concurrency = 6
)

// Source is one place that evidence comes from: a node, a cluster, an upstream.
type Source interface {
	// Name is the source's folder, for example "node/registry-cache-shoot-worker". Files of a source with an empty name
	// stand beside the index.
	Name() string
	// Collect writes files and notes failures. It should return when ctx ends.
	Collect(ctx context.Context, into *Folder)
}

// Collect writes the evidence of all sources below dir, each into the folder of its name, and dir/index.md, which lists
// the files and everything that failed. Sources run concurrently; one that takes over a minute is given up. What
// earlier runs left in the sources' folders is removed first, other files in dir stay.
//
// The error only says that parts are missing; it is for a message, not for a decision. It joins what is in the index,
// and the failure to write the index itself.
func Collect(ctx context.Context, dir string, sources ...Source) error {
	began := time.Now()
	folders := make([]*Folder, len(sources))
	slots := make(chan struct{}, concurrency)
	var running sync.WaitGroup
	for i, source := range sources {
		folders[i] = &Folder{dir: dir, name: source.Name()}
		running.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			collect(ctx, source, folders[i], sourceTimeout, grace)
		})
	}
	running.Wait()
	slices.SortStableFunc(folders, func(a, b *Folder) int { return strings.Compare(a.name, b.name) })
	errs := []error{}
	for _, folder := range folders {
		errs = append(errs, folder.failures...)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return errors.Join(append(errs, fmt.Errorf("write diagnostics: %w", err))...)
	}
	index := []byte(render(filepath.Base(dir), began, folders))
	if err := os.WriteFile(filepath.Join(dir, "index.md"), index, 0o644); err != nil {
		errs = append(errs, fmt.Errorf("write diagnostics: %w", err))
	}
	return errors.Join(errs...)
}

// collect runs one source. One that ignores the end of its context is left behind: its folder is closed, so that what
// it still writes is dropped.
func collect(ctx context.Context, source Source, folder *Folder, timeout, grace time.Duration) {
	began := time.Now()
	defer func() { folder.close(time.Since(began)) }()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if folder.name != "" {
		folder.Fail("", os.RemoveAll(filepath.Join(folder.dir, folder.name)))
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if cause := recover(); cause != nil {
				folder.Fail("", fmt.Errorf("panic: %v", cause))
			}
		}()
		source.Collect(ctx, folder)
	}()
	select {
	case <-done:
		return
	case <-ctx.Done():
	}
	select {
	case <-done:
	case <-time.After(grace):
		folder.Fail("", fmt.Errorf("given up after %s: %w", timeout, ctx.Err()))
	}
}
