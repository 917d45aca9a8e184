package kind

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/kind/progress"
	"github.com/gardener-extensions/registry-cache/kind/upstream"
)

// ForeignError says that the testbed of this prefix, which runs, belongs to another directory of this machine: its clusters trust the
// certificate authority that lies there. It counts as a matter of the environment (internal/program).
type ForeignError struct {
	// Prefix names the testbed, Directory is whose it is: a checkout of the repository, or else the folder with the state.
	Prefix, Directory string
}

// Error says how to go on.
func (e *ForeignError) Error() string {
	return fmt.Sprintf("testbed %s belongs to %s: use it there, remove it there by `testbed down` or here by `make e2e REPLACE=1`, "+
		"or have another one by --prefix NAME",
		e.Prefix, e.Directory)
}

// EnvironmentError marks the error for internal/program.
func (*ForeignError) EnvironmentError() {}

// possession says whose the testbed of our prefix is that is there.
type possession string

const (
	// ours: it was made for our state, or nothing tells that it was not.
	ours possession = "ours"
	// left: it was made for a state that is gone, or does not run any more. Nobody misses it.
	left possession = "left"
	// foreign: it was made for another state, and runs.
	foreign possession = "foreign"
)

// possessionOf judges a testbed that was made for one state, seen from another one. No state is one that is not known.
func possessionOf(made, own state, running bool) possession {
	if made == "" || filepath.Clean(string(made)) == filepath.Clean(string(own)) || sameFolder(string(made), string(own)) {
		return ours
	}
	// The folder alone tells nothing: Docker makes the source of a mount anew when it starts a container again.
	if _, err := os.Stat(made.seedKubeconfig()); errors.Is(err, fs.ErrNotExist) || !running {
		return left
	}
	return foreign
}

// sameFolder tells whether two paths lead to one folder, as by a link.
func sameFolder(a, b string) bool {
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(infoA, infoB)
}

// directory is what people know a state by.
func (s state) directory() string {
	if parent := filepath.Dir(string(s)); filepath.Base(parent) == DefaultDirectory {
		return filepath.Dir(parent)
	}
	return string(s)
}

// owner says for which state the testbed was made that is there, and what that means to us. The engine has to run.
func (t *Testbed) owner(ctx context.Context) (state, possession, error) {
	made, running, err := cluster.Origin(ctx, t.seedName())
	return state(made), possessionOf(state(made), t.state, running), err
}

// checkOwner returns a *ForeignError for a testbed that is not ours.
func (t *Testbed) checkOwner(ctx context.Context) error {
	made, whose, err := t.owner(ctx)
	if err == nil && whose == foreign {
		err = &ForeignError{Prefix: t.prefix, Directory: made.directory()}
	}
	return err
}

// claim is checkOwner for Up, before anything is built: one that may be replaced is ours, too.
func (t *Testbed) claim(ctx context.Context) error {
	if !t.replace {
		if err := t.checkOwner(ctx); err != nil {
			return err
		}
	}
	if t.claimed != nil {
		t.claimed()
	}
	return nil
}

// replaceOthers removes a testbed that was made for another state and may be replaced. Its clusters would be kept otherwise, with
// nodes that trust an authority of which nobody has the key, and a control plane that needs a file of a folder that may be gone.
func (t *Testbed) replaceOthers(ctx context.Context) error {
	made, whose, err := t.owner(ctx)
	if err != nil || whose == ours {
		return err
	}
	if whose == foreign && !t.replace {
		return &ForeignError{Prefix: t.prefix, Directory: made.directory()}
	}
	return t.recorder.Step(ctx, "testbed of another directory removed", func(ctx context.Context) error {
		progress.Note(ctx, "%s", made.directory())
		return errors.Join(
			cluster.Delete(ctx, t.seedName()), cluster.Delete(ctx, t.shootName()), upstream.Remove(ctx, t.prefix))
	})
}
