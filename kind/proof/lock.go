package proof

import (
	"context"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/engine"
)

// lockProof takes the lock that excludes a second proof until release is called or the process
// exits. It fails while another process uses the testbed, and if the testbed belongs to another
// directory. It does not keep the other locks of the testbed: each run of scenarios takes them.
func lockProof(ctx context.Context, t *kind.Testbed) (release func(), err error) {
	release, err = t.LockProof()
	if err != nil {
		return nil, err
	}
	if err := checkUnused(ctx, t); err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// checkUnused returns kind.ErrBusy while another process uses the testbed, and a
// *kind.OtherCheckoutError if the testbed belongs to another directory.
func checkUnused(ctx context.Context, t *kind.Testbed) error {
	unlock, err := t.Lock()
	if err != nil {
		return err
	}
	defer unlock()
	if engine.Running(ctx) == nil { // without a container engine there is no testbed, so no owner either
		return nil
	}
	return t.CheckOwner(ctx)
}

// StartError is why Prove did not start. Nothing was changed. The cause is kind.ErrBusy, a
// *kind.OtherCheckoutError, or an error from looking up the owner.
type StartError struct{ cause error }

func (e *StartError) Error() string { return e.cause.Error() }

// Unwrap returns the cause.
func (e *StartError) Unwrap() error { return e.cause }
