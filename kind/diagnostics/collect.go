package diagnostics

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/gardener-extensions/registry-cache/kind/diagnostics/bundle"
	"github.com/gardener-extensions/registry-cache/kind/diagnostics/finding"
	"github.com/gardener-extensions/registry-cache/kind/diagnostics/timeline"
)

// IndexFile is the file that readers of a bundle open first.
const IndexFile = "index.md"

const (
	timelineFile = "timeline.txt"
	// sourceTimeout limits the context of a source. After that, Collect waits for at most grace.
	sourceTimeout = time.Minute
	grace         = 5 * time.Second
	// concurrency is higher than the number of cores of small machines, since sources mostly wait.
	concurrency = 6
)

// Collect writes a bundle to dir: the files of the sources, timeline.txt, and the index. Sources
// run concurrently. Each is abandoned after about a minute.
//
// Collect first removes the files of an earlier bundle, also those of sources that no longer exist.
// It keeps other files in dir. It replaces the index last: if it is interrupted, the earlier index
// still marks the folder as a bundle. It touches nothing if ctx has already ended.
//
// The error joins all failures that are in the index, and a failure to write the index. Collect may
// return an error and still write a bundle.
func Collect(ctx context.Context, dir string, sources ...Source) error {
	if ctx.Err() != nil {
		return fmt.Errorf("collect diagnostics: %w", context.Cause(ctx))
	}
	began := time.Now()
	own := &Folder{dir: dir}
	removePrevious(dir, sources, own)
	var folders []*Folder
	var running errgroup.Group
	running.SetLimit(concurrency)
	for _, source := range sources {
		folder := &Folder{dir: dir, name: source.Name}
		folders = append(folders, folder)
		running.Go(func() error {
			collect(ctx, source, folder, sourceTimeout, grace)
			return nil
		})
	}
	_ = running.Wait() // the folders record the errors
	result := conclude(dir, began, own)
	own.close(0)
	folders = append(folders, own)
	slices.SortStableFunc(folders, func(a, b *Folder) int { return strings.Compare(a.name, b.name) })
	var errs []error
	for _, folder := range folders {
		errs = append(errs, folder.failures...)
	}
	page := &index{title: filepath.Base(dir), began: began, folders: folders, conclusions: result}
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, IndexFile), []byte(page.render()), 0o644)); err != nil {
		errs = append(errs, fmt.Errorf("write diagnostics: %w", err))
	}
	return errors.Join(errs...)
}

func removePrevious(dir string, sources []Source, own *Folder) {
	names := append(bundle.Evidence(), timelineFile)
	for _, source := range sources {
		if first, _, _ := strings.Cut(source.Name, "/"); first != "" {
			names = append(names, first)
		}
	}
	for _, name := range names {
		own.Fail(name, os.RemoveAll(filepath.Join(dir, name)))
	}
}

type conclusions struct {
	bundle   *bundle.Bundle
	findings []finding.Finding
	timeline []timeline.Entry
}

// conclude reads the collected files and writes the timeline. It recovers from panics, so that
// Collect writes the index even if a check panics.
func conclude(dir string, began time.Time, own *Folder) (result conclusions) {
	defer func() {
		if cause := recover(); cause != nil {
			own.Fail("", fmt.Errorf("draw conclusions: panic: %v", cause))
		}
	}()
	result.bundle = bundle.Read(os.DirFS(dir), began)
	result.findings = finding.Find(result.bundle)
	result.timeline = timeline.Build(result.bundle)
	var text bytes.Buffer
	own.Fail(timelineFile, timeline.Write(&text, result.timeline))
	own.Write(timelineFile, text.Bytes())
	return result
}

// collect runs one source and closes its folder. It abandons a source that has not returned after
// timeout plus grace. The closed folder drops later writes of that source.
func collect(ctx context.Context, source Source, folder *Folder, timeout, grace time.Duration) {
	began := time.Now()
	defer func() { folder.close(time.Since(began)) }()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
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
		folder.Fail("", fmt.Errorf("not done after %s: %w", timeout, ctx.Err()))
	}
}
