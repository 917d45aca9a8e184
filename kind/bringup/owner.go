package bringup

import (
	"context"
	"errors"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/kind/progress"
	"github.com/gardener-extensions/registry-cache/kind/upstream"
)

// claim is checkOwner for Up, before anything is built: one that may be replaced is ours, too.
func claim(ctx context.Context, t *kind.Testbed) error {
	if !t.Replace {
		if err := t.CheckOwner(ctx); err != nil {
			return err
		}
	}
	if t.Claimed != nil {
		t.Claimed()
	}
	return nil
}

// replaceOthers removes a testbed that was made for another state and may be replaced. Its clusters would be kept otherwise, with
// nodes that trust an authority of which nobody has the key, and a control plane that needs a file of a folder that may be gone.
func replaceOthers(ctx context.Context, t *kind.Testbed) error {
	made, whose, err := t.Owner(ctx)
	if err != nil || whose == kind.Ours {
		return err
	}
	if whose == kind.Foreign && !t.Replace {
		return &kind.OtherCheckoutError{Prefix: t.Prefix, Directory: made.Directory()}
	}
	return t.Recorder.Step(ctx, "testbed of another directory removed", func(ctx context.Context) error {
		progress.Note(ctx, "%s", made.Directory())
		return errors.Join(
			cluster.Delete(ctx, t.SeedName()), cluster.Delete(ctx, t.ShootName()), upstream.Remove(ctx, t.Prefix))
	})
}
