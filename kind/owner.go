package kind

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gardener-extensions/registry-cache/kind/cluster"
)

// OtherCheckoutError says that the testbed of this prefix, which runs, belongs to another directory of this machine: its clusters trust the
// certificate authority that lies there. It counts as a matter of the environment (internal/program).
type OtherCheckoutError struct {
	// Prefix names the testbed, Directory is whose it is: a checkout of the repository, or else the folder with the state.
	Prefix, Directory string
}

// Error says how to go on.
func (e *OtherCheckoutError) Error() string {
	return fmt.Sprintf("testbed %s belongs to %s: use it there, remove it there by `testbed down` or here by `make e2e REPLACE=1`, "+
		"or have another one by --prefix NAME",
		e.Prefix, e.Directory)
}

// EnvironmentError marks the error for internal/program.
func (*OtherCheckoutError) EnvironmentError() {}

// possession says whose the testbed of our prefix is that is there.
type possession string

const (
	// ours: it was made for our state, or nothing tells that it was not.
	Ours possession = "ours"
	// left: it was made for a state that is gone, or does not run any more. Nobody misses it.
	left possession = "left"
	// foreign: it was made for another state, and runs.
	Foreign possession = "foreign"
)

// possessionOf judges a testbed that was made for one state, seen from another one. No state is one that is not known.
func possessionOf(made, own State, running bool) possession {
	if made == "" || filepath.Clean(string(made)) == filepath.Clean(string(own)) || sameFolder(string(made), string(own)) {
		return Ours
	}
	// The folder alone tells nothing: Docker makes the source of a mount anew when it starts a container again.
	if _, err := os.Stat(made.SeedKubeconfig()); errors.Is(err, fs.ErrNotExist) || !running {
		return left
	}
	return Foreign
}

// sameFolder tells whether two paths lead to one folder, as by a link.
func sameFolder(a, b string) bool {
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(infoA, infoB)
}

// directory is what people know a state by.
func (s State) Directory() string {
	if parent := filepath.Dir(string(s)); filepath.Base(parent) == DefaultDirectory {
		return filepath.Dir(parent)
	}
	return string(s)
}

// owner says for which state the testbed was made that is there, and what that means to us. The engine has to run.
func (t *Testbed) Owner(ctx context.Context) (State, possession, error) {
	made, running, err := cluster.KubeconfigFolder(ctx, t.SeedName())
	return State(made), possessionOf(State(made), t.State, running), err
}

// checkOwner returns a *OtherCheckoutError for a testbed that is not ours.
func (t *Testbed) CheckOwner(ctx context.Context) error {
	made, whose, err := t.Owner(ctx)
	if err == nil && whose == Foreign {
		err = &OtherCheckoutError{Prefix: t.Prefix, Directory: made.Directory()}
	}
	return err
}
