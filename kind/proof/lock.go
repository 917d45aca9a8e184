package proof

import (
	"context"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/engine"
)

// beginProof keeps a second proof out until the returned function is called or this process ends. It is refused, with who or whose it
// is, while another process works on the testbed and where that belongs to another directory. Of the testbed's own locks it holds none:
// each run of scenarios takes them for itself.
func beginProof(ctx context.Context, t *kind.Testbed) (release func(), err error) {
	release, err = t.LockProof()
	if err != nil {
		return nil, err
	}
	if err := checkFree(ctx, t); err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// checkFree returns ErrBusy while another process works on the testbed, and a *OtherCheckoutError for one that is not ours.
func checkFree(ctx context.Context, t *kind.Testbed) error {
	done, err := t.Lock()
	if err != nil {
		return err
	}
	defer done()
	if engine.Running(ctx) == nil { // nor does a testbed, whosever it was
		return nil
	}
	return t.CheckOwner(ctx)
}

// ProofRefused says why a proof did not begin: the cause is ErrBusy or a *OtherCheckoutError, or the owner could not be had. Nothing was touched.
type RefusedError struct{ cause error }

func (e *RefusedError) Error() string { return e.cause.Error() }

// Unwrap returns the cause.
func (e *RefusedError) Unwrap() error { return e.cause }
