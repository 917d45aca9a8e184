// Package export packs into one archive what an engineer needs to find the cause of a problem on a
// testbed: kind's logs of both clusters, Kubernetes objects, access logs of the upstreams, the
// configuration of the nodes, versions and active faults, with an index. It draws no conclusions.
package export

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/gardener-extensions/registry-cache/kind"
	replace "github.com/gardener-extensions/registry-cache/kind/file"
	"github.com/gardener-extensions/registry-cache/kind/progress"
)

// Suffix is the end of an archive's file name.
const Suffix = ".tar.gz"

// Archive describes a written archive.
type Archive struct {
	Path string `json:"archive"`
	// Missing names what could not be collected, with the reason.
	Missing []string `json:"missing,omitempty"`
	// Index is index.md, the file in the archive that readers open first.
	Index string `json:"-"`
}

// Err returns an error if something could not be collected.
func (a *Archive) Err() error {
	if len(a.Missing) == 0 {
		return nil
	}
	return errors.New(strings.Join(a.Missing, "; "))
}

// Write connects to the existing parts of the testbed and collects them, see Collect.
// Archive.Missing also names parts that do not exist. Write takes no lock. If it finds no part, it
// writes nothing and returns the error of Testbed.AttachParts.
func Write(ctx context.Context, t *kind.Testbed, file string) (*Archive, error) {
	var archive *Archive
	err := t.Recorder.Step(ctx, "export", func(ctx context.Context) (err error) {
		attached := t.AttachParts(ctx)
		if t.Seed == nil && t.Shoot == nil && len(t.Upstreams.All()) == 0 {
			return attached
		}
		missing := func(_ context.Context, into *folder) { into.fail("parts of the testbed", attached) }
		archive, err = collect(ctx, append(parts(t), missing), file, "")
		return err
	})
	return archive, err
}

const (
	// partTimeout bounds each part, for example the objects of a cluster.
	partTimeout = time.Minute
	// concurrency bounds how many parts run at once. Parts mostly wait.
	concurrency = 8
)

// part collects one part of an export. It should return when ctx ends.
type part func(ctx context.Context, into *folder)

// Collect packs the attached parts of the testbed into an archive, and replaces an existing file.
// The text why is part of the index. A part that cannot be read is not an error: Archive.Missing
// names it. If ctx times out, Collect packs what it has; if ctx is canceled (Ctrl-C), it writes
// nothing.
func Collect(ctx context.Context, t *kind.Testbed, file, why string) (*Archive, error) {
	return collect(ctx, parts(t), file, why)
}

func collect(ctx context.Context, parts []part, file, why string) (*Archive, error) {
	dir, err := os.MkdirTemp("", "testbed-export-")
	if err != nil {
		return nil, fmt.Errorf("create a folder for the export: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	into, began := &folder{dir: dir}, time.Now()
	var running errgroup.Group
	running.SetLimit(concurrency)
	for _, part := range parts {
		running.Go(func() error {
			ctx, cancel := progress.Within(ctx, partTimeout, "not done")
			defer cancel()
			part(ctx, into)
			return nil
		})
	}
	_ = running.Wait() // the folder records the errors
	if errors.Is(ctx.Err(), context.Canceled) {
		return nil, context.Cause(ctx)
	}
	archive := &Archive{Path: file, Missing: into.missing()}
	archive.Index = index(began, why, into.text(statusFile), archive.Missing)
	into.add(indexFile, archive.Index, nil)
	content, err := pack(dir, strings.TrimSuffix(filepath.Base(file), Suffix))
	if err == nil {
		err = errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), replace.Replace(file, content, 0o600))
	}
	if err != nil {
		return nil, fmt.Errorf("pack %s: %w", file, err)
	}
	return archive, nil
}

// folder stores the files of an export. Its methods are safe for concurrent use.
type folder struct {
	dir    string
	mu     sync.Mutex
	failed []string
}

// add stores a file, even if err made its content incomplete, and records err. Without an error, it
// also stores an empty file, which shows that there was nothing.
func (f *folder) add(name, content string, err error) {
	if content != "" || err == nil {
		target := filepath.Join(f.dir, name)
		err = errors.Join(err, os.MkdirAll(filepath.Dir(target), 0o700), os.WriteFile(target, []byte(content), 0o600))
	}
	f.fail(name, err)
}

// fail records that a file or folder could not be collected. It ignores a nil error.
func (f *folder) fail(name string, err error) {
	if err == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failed = append(f.failed, name+": "+oneLine(err.Error()))
}

func (f *folder) missing() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.failed
}

// text returns the content of a file, or "".
func (f *folder) text(name string) string {
	content, _ := os.ReadFile(filepath.Join(f.dir, name)) // a file that was not collected is empty
	return string(content)
}

// oneLine joins lines and cuts long text: the output of a failed command must not break a list.
func oneLine(text string) string {
	const limit = 1000
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > limit {
		text = strings.ToValidUTF8(text[:limit], "") + "…"
	}
	return text
}

// leftOut lists folders of a node's /var/log that pack omits: links to the files in pods, and the
// binary form of journal.log.
var leftOut = map[string]bool{"containers": true, "journal": true}

// pack returns the files below dir as a .tar.gz with one folder. A part that timed out may still be
// writing, so pack reads each file only up to the size that it saw first.
func pack(dir, root string) ([]byte, error) {
	var content bytes.Buffer
	compressed := gzip.NewWriter(&content)
	archive := tar.NewWriter(compressed)
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && leftOut[entry.Name()]:
			return fs.SkipDir
		case !entry.Type().IsRegular():
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		file, err := os.Open(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		defer func() { _ = file.Close() }() // it was only read
		header := &tar.Header{Name: path.Join(root, name), Mode: 0o600, Size: info.Size(), ModTime: info.ModTime()}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		_, err = io.CopyN(archive, file, info.Size())
		return err
	})
	err = errors.Join(err, archive.Close(), compressed.Close())
	return content.Bytes(), err
}
