package diagnostics

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/diagnostics/bundle"
	"github.com/gardener-extensions/registry-cache/kind/diagnostics/finding"
	"github.com/gardener-extensions/registry-cache/kind/progress"
)

// exportTimeout bounds Export; one source has a minute.
const exportTimeout = 2 * time.Minute

// OccupiedError says that a folder has something else than a bundle.
type OccupiedError struct{ Folder string }

func (e *OccupiedError) Error() string {
	return fmt.Sprintf("%s has files that are no bundle: name a folder that is empty, or not there", e.Folder)
}

// UsageError marks the error for internal/program: exit code 2.
func (*OccupiedError) UsageError() {}

// Bundle is what Export has written.
type Bundle struct {
	// Index is the file to read first.
	Index string `json:"index"`
	// Findings are what is wrong, and what stands out.
	Findings []finding.Finding `json:"findings"`
	// Missing says what could not be had; empty if there is all.
	Missing string `json:"missing,omitempty"`
}

// Export connects to the testbed, or to the parts of it that exist, and writes a bundle into the
// folder, see Diagnose. The folder may be missing, empty, or hold an earlier bundle, which is
// replaced once a part of the testbed is found; files that are not of a bundle stay. Any other
// folder is an *OccupiedError.
//
// Export changes nothing on the testbed and takes no lock; it stores the metrics, so that the next
// bundle can be compared with them. Without any part of a testbed the error is an ErrDown, for one
// of another checkout a *kind.OtherCheckoutError. Parts that could not be read are no error.
func Export(ctx context.Context, t *kind.Testbed, folder string) (*Bundle, error) {
	return ExportWith(ctx, t, folder, func(ctx context.Context, dir string, more ...Source) error {
		return Diagnose(ctx, t, dir, more...)
	})
}

// ExportWith is Export, by another way to collect.
func ExportWith(ctx context.Context, t *kind.Testbed, folder string,
	collect func(context.Context, string, ...Source) error,
) (*Bundle, error) {
	if err := checkFolder(folder); err != nil {
		return nil, err
	}
	ctx, cancel := progress.Within(ctx, exportTimeout, "no bundle")
	defer cancel()
	exported := &Bundle{Index: filepath.Join(folder, IndexFile), Findings: []finding.Finding{}}
	err := t.Recorder.Step(ctx, "export", func(ctx context.Context) error {
		attached := t.AttachParts(ctx)
		if t.Seed == nil && t.Shoot == nil && len(t.Upstreams.All()) == 0 {
			return attached
		}
		began := time.Now()
		if err := errors.Join(attached, collect(ctx, folder)); err != nil {
			exported.Missing = err.Error()
			progress.Note(ctx, "incomplete")
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		exported.Findings = append(exported.Findings, finding.Find(bundle.Read(os.DirFS(folder), began))...)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return exported, nil
}

// checkFolder refuses a folder that is not for a bundle.
func checkFolder(folder string) error {
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("the folder of the bundle: %w", err)
	}
	if len(entries) == 0 {
		return nil
	}
	index, err := os.ReadFile(filepath.Join(folder, IndexFile))
	if err != nil || !strings.HasPrefix(string(index), IndexTitle) {
		return &OccupiedError{Folder: folder} // somebody else's may have an index.md, too
	}
	return nil
}
