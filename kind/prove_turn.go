package kind

import (
	"context"

	"github.com/gardener-extensions/registry-cache/kind/engine"
)

// beginProof keeps a second proof out until the returned function is called or this process ends. It is refused, with who or whose it
// is, while another process works on the testbed and where that belongs to another directory. Of the testbed's own locks it holds none:
// each run of scenarios takes them for itself.
func (t *Testbed) beginProof(ctx context.Context) (release func(), err error) {
	release, err = t.LockProof()
	if err != nil {
		return nil, err
	}
	if err := t.checkFree(ctx); err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// checkFree returns ErrBusy while another process works on the testbed, and a *ForeignError for one that is not ours.
func (t *Testbed) checkFree(ctx context.Context) error {
	done, err := t.Lock()
	if err != nil {
		return err
	}
	defer done()
	if engine.Running(ctx) == nil { // nor does a testbed, whosever it was
		return nil
	}
	return t.checkOwner(ctx)
}

// ProofRefused says why a proof did not begin: the cause is ErrBusy or a *ForeignError, or the owner could not be had. Nothing was touched.
type ProofRefused struct{ cause error }

func (e *ProofRefused) Error() string { return e.cause.Error() }

// Unwrap returns the cause.
func (e *ProofRefused) Unwrap() error { return e.cause }
