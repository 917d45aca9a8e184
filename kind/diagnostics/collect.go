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
	"sync"
	"time"

	"github.com/gardener-extensions/registry-cache/kind/diagnostics/bundle"
	"github.com/gardener-extensions/registry-cache/kind/diagnostics/finding"
	"github.com/gardener-extensions/registry-cache/kind/diagnostics/timeline"
)

// IndexFile is what to read first, in the folder of a bundle.
const IndexFile = "index.md"

const timelineFile = "timeline.txt"

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

// Collect writes the evidence of all sources below dir, each into the folder of its name; dir/timeline.txt, one list of what
// happened by all of them; and dir/index.md: what is wrong, the newest part of that list, the files, and everything that could
// not be had. Sources run concurrently; one that takes over a minute is given up. What an earlier bundle left is removed first,
// also of sources that are not there any more; other files in dir stay. The index is replaced last: a folder that was left half
// done is still known for a bundle. If ctx has ended before, nothing is touched.
//
// The error only says that parts are missing; it is for a message, not for a decision. It joins what is in the index,
// and the failure to write the index itself.
func Collect(ctx context.Context, dir string, sources ...Source) error {
	if ctx.Err() != nil {
		return fmt.Errorf("collect evidence: %w", context.Cause(ctx))
	}
	began := time.Now()
	own := &Folder{dir: dir}
	removeEarlier(dir, sources, own)
	folders := []*Folder{}
	for _, source := range sources {
		folders = append(folders, &Folder{dir: dir, name: source.Name()})
	}
	slots := make(chan struct{}, concurrency)
	var running sync.WaitGroup
	for i, source := range sources {
		running.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			collect(ctx, source, folders[i], sourceTimeout, grace)
		})
	}
	running.Wait()
	result := conclude(dir, began, own)
	own.close(0)
	folders = append(folders, own)
	slices.SortStableFunc(folders, func(a, b *Folder) int { return strings.Compare(a.name, b.name) })
	return writeIndex(dir, &index{title: filepath.Base(dir), began: began, folders: folders, conclusions: result})
}

// removeEarlier removes what an earlier bundle left.
func removeEarlier(dir string, sources []Source, own *Folder) {
	names := append(bundle.Evidence(), timelineFile)
	for _, source := range sources {
		if first, _, _ := strings.Cut(source.Name(), "/"); first != "" {
			names = append(names, first)
		}
	}
	for _, name := range names {
		own.Fail(name, os.RemoveAll(filepath.Join(dir, name)))
	}
}

// conclusions are what is computed from the files.
type conclusions struct {
	bundle   *bundle.Bundle
	findings []finding.Finding
	timeline []timeline.Entry
}

// conclude reads what was written, and adds the timeline. A mistake of ours here costs the conclusions and nothing else.
func conclude(dir string, began time.Time, own *Folder) (result conclusions) {
	defer func() {
		if cause := recover(); cause != nil {
			own.Fail("", fmt.Errorf("the conclusions: panic: %v", cause))
		}
	}()
	result.bundle = bundle.Read(os.DirFS(dir), began)
	result.findings = finding.Find(result.bundle)
	result.timeline = timeline.Build(result.bundle)
	var text bytes.Buffer
	if err := timeline.Write(&text, result.timeline); err != nil {
		own.Fail(timelineFile, err)
	}
	own.Write(timelineFile, text.Bytes())
	return result
}

func writeIndex(dir string, i *index) error {
	errs := []error{}
	for _, folder := range i.folders {
		errs = append(errs, folder.failures...)
	}
	err := os.MkdirAll(dir, 0o755)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, IndexFile), []byte(i.render()), 0o644)
	}
	if err != nil {
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
