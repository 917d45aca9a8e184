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

// OtherCheckoutError reports that a running testbed with this prefix belongs to another directory
// of this machine. Its nodes trust the CA in that directory. It is an environment error.
type OtherCheckoutError struct {
	environmentError
	Prefix    string // of the testbed
	Directory string // the checkout that owns the testbed, or the state folder if that is elsewhere
}

func (e *OtherCheckoutError) Error() string {
	return fmt.Sprintf("testbed %s belongs to %s: use it there, remove it there with `testbed down` or here with "+
		"`make e2e REPLACE=1`, or use another testbed with --prefix NAME", e.Prefix, e.Directory)
}

// Owner is who owns the containers of a testbed, as seen from this checkout.
type Owner string

const (
	// ThisCheckout: the containers were created for this or an unknown state folder, or do not exist.
	ThisCheckout Owner = "this checkout"
	// NoCheckout: the state folder no longer exists, or the containers do not run. Up may replace
	// them.
	NoCheckout Owner = "no checkout"
	// OtherCheckout: the containers run and were created for another state folder.
	OtherCheckout Owner = "another checkout"
)

// ownerOf returns the owner of containers that were created for a state folder, or for an unknown
// one if created is empty.
func ownerOf(created, here State, running bool) Owner {
	if created == "" || filepath.Clean(string(created)) == filepath.Clean(string(here)) || sameFolder(string(created), string(here)) {
		return ThisCheckout
	}
	// The existence of the folder proves nothing: Docker recreates the source of a mount when it
	// restarts a container.
	if _, err := os.Stat(created.SeedKubeconfig()); errors.Is(err, fs.ErrNotExist) || !running {
		return NoCheckout
	}
	return OtherCheckout
}

// sameFolder reports whether two paths lead to one folder, for example through a symbolic link.
func sameFolder(a, b string) bool {
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(infoA, infoB)
}

// Directory returns the checkout of the state folder, or the folder itself if it is not in its
// default place.
func (s State) Directory() string {
	if parent := filepath.Dir(string(s)); filepath.Base(parent) == DefaultDirectory {
		return filepath.Dir(parent)
	}
	return string(s)
}

// Owner returns the state folder that the testbed's containers were created for, and their owner.
// The engine must run.
func (t *Testbed) Owner(ctx context.Context) (State, Owner, error) {
	folder, running, err := cluster.KubeconfigFolder(ctx, t.SeedName())
	return State(folder), ownerOf(State(folder), t.State, running), err
}

// CheckOwner returns an *OtherCheckoutError if another checkout owns the testbed.
func (t *Testbed) CheckOwner(ctx context.Context) error {
	created, owner, err := t.Owner(ctx)
	if err == nil && owner == OtherCheckout {
		err = &OtherCheckoutError{Prefix: t.Prefix, Directory: created.Directory()}
	}
	return err
}
