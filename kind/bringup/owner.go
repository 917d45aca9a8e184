package bringup

import (
	"context"
	"errors"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/kind/progress"
	"github.com/gardener-extensions/registry-cache/kind/upstream"
)

// claim checks, before anything is built, that Up may use the prefix, and calls Claimed.
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

// replaceOtherCheckout removes a testbed that was created for another state folder, if it may be
// replaced. Up could not use its clusters: their nodes trust a CA whose key is missing here, and
// their control plane mounts a file from a folder that may be gone.
func replaceOtherCheckout(ctx context.Context, t *kind.Testbed) error {
	created, owner, err := t.Owner(ctx)
	if err != nil || owner == kind.ThisCheckout {
		return err
	}
	if owner == kind.OtherCheckout && !t.Replace {
		return &kind.OtherCheckoutError{Prefix: t.Prefix, Directory: created.Directory()}
	}
	return t.Recorder.Step(ctx, "testbed of another checkout removed", func(ctx context.Context) error {
		progress.Note(ctx, "%s", created.Directory())
		return errors.Join(
			cluster.Delete(ctx, t.SeedName()), cluster.Delete(ctx, t.ShootName()), upstream.Remove(ctx, t.Prefix))
	})
}
