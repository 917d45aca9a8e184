package kind

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/kind/diagnostics"
	"github.com/gardener-extensions/registry-cache/kind/diagnostics/bundle"
	"github.com/gardener-extensions/registry-cache/kind/diagnostics/finding"
	"github.com/gardener-extensions/registry-cache/kind/engine"
	"github.com/gardener-extensions/registry-cache/kind/progress"
	"github.com/gardener-extensions/registry-cache/kind/upstream"
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

// Export connects to what there is of the testbed, also to a part of one, and writes all that can be had into the folder, see
// Diagnose. The folder may be absent, empty, or have an earlier bundle, which is replaced as soon as a part of the testbed was found,
// also if it is not collected to the end then; files of nobody's bundle stay. Anything else is an *OccupiedError. It
// changes nothing on the testbed and takes no lock; it only keeps the metrics, for the next bundle to compare with. Without any part of
// a testbed the error is an ErrDown, for one of another directory a *ForeignError; parts that could not be had are no error.
func (t *Testbed) Export(ctx context.Context, folder string) (*Bundle, error) {
	return t.export(ctx, folder, t.Diagnose)
}

// export is Export, by another way to collect.
func (t *Testbed) export(ctx context.Context, folder string,
	collect func(context.Context, string, ...diagnostics.Source) error,
) (*Bundle, error) {
	if err := checkFolder(folder); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, exportTimeout, fmt.Errorf("no bundle after %s", exportTimeout))
	defer cancel()
	exported := &Bundle{Index: filepath.Join(folder, diagnostics.IndexFile), Findings: []finding.Finding{}}
	err := t.recorder.Step(ctx, "export", func(ctx context.Context) error {
		attached := t.attachParts(ctx)
		if t.seed == nil && t.shoot == nil && len(t.upstreams.all()) == 0 {
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
	index, err := os.ReadFile(filepath.Join(folder, diagnostics.IndexFile))
	if err != nil || !strings.HasPrefix(string(index), diagnostics.IndexTitle) {
		return &OccupiedError{Folder: folder} // somebody else's may have an index.md, too
	}
	return nil
}

// attachParts is Attach for a testbed of which only a part may be there, without its Authority. The error names the parts that are
// not there.
func (t *Testbed) attachParts(ctx context.Context) error {
	found, err := engine.Attach(ctx)
	if err != nil {
		return err
	}
	if found == nil {
		return ErrDown
	}
	t.engine = found
	if err := t.checkOwner(ctx); err != nil {
		return err
	}
	var failed error
	load := func(name, kubeconfig string) *cluster.Cluster {
		loaded, err := load(ctx, name, kubeconfig)
		if err != nil {
			failed = errors.Join(failed, err)
			return nil
		}
		return loaded
	}
	t.seed = load(t.seedName(), t.state.seedKubeconfig())
	t.shoot = load(t.shootName(), t.state.shootKubeconfig())
	registries, err := upstream.List(ctx, t.prefix)
	if err != nil {
		return errors.Join(failed, fmt.Errorf("list the upstreams of testbed %s: %w", t.prefix, err))
	}
	t.upstreams.set(registries)
	return failed
}
