package fieldbugs

import (
	"context"
	"fmt"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"

	"github.com/gardener-extensions/registry-cache/kind/status"
)

// caRotated is a rotation of the Shoot's CAs.
func caRotated() Bug {
	return Bug{
		ID: "s18", Slug: "ca-rotation", Title: "the CAs are rotated",
		Reports:     []string{"gardener#10375", "gardener#10831"},
		Symptom:     "Pulls through the cache fail with x509 errors during or after a rotation.",
		Fault:       "none: gardenlet rotates the CAs",
		Expectation: "All nodes pull through the cache in each phase.",
		Lane:        Full, Shoot: HTTPS,
		Reproduce: func(ctx context.Context, r *Rig) error {
			r.Afterwards(r.endRotation)
			for _, phase := range []string{"rotate-ca-start", "rotate-ca-complete"} {
				if _, err := r.Testbed(ctx, "shoot", phase); err != nil {
					return err
				}
				img, err := r.requireCachedWithin(ctx, "after "+phase+" new images come through the cache", settled)
				if err != nil {
					return err
				}
				if _, err := r.requireHit(ctx, img.Reference, "after "+phase+" nodes pull through the cache"); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// endRotation completes a rotation from any phase, for the next bug. It does nothing without one.
func (r *Rig) endRotation(ctx context.Context) error {
	const phases = 2 // from Preparing on, two commands are between here and the end
	for range phases {
		phase, verb, err := r.rotation(ctx)
		if err != nil || verb == "" {
			return err
		}
		if _, err := r.run(ctx, []string{"shoot", verb}); err != nil {
			return fmt.Errorf("end the rotation in phase %s: %w", phase, err)
		}
	}
	phase, verb, err := r.rotation(ctx)
	if err == nil && verb != "" {
		err = fmt.Errorf("the rotation is still in phase %s", phase)
	}
	return err
}

// rotation is where the rotation stands, and the verb of `testbed shoot` that goes on with it;
// empty where nothing is to be done. A shoot whose phase could not be read is an error: it looks
// like one that never rotated.
func (r *Rig) rotation(ctx context.Context) (phase gardencorev1beta1.CredentialsRotationPhase, verb string, err error) {
	var status status.Shoot
	if err := r.decode(ctx, &status, []string{"shoot", "get"}); err != nil {
		return "", "", err
	}
	if err := status.CheckStage(); err != nil {
		return "", "", fmt.Errorf("phase of the rotation: %w", err)
	}
	switch status.Rotation {
	case gardencorev1beta1.RotationPreparing, gardencorev1beta1.RotationCompleting:
		verb = "reconcile"
	case gardencorev1beta1.RotationPrepared:
		verb = "rotate-ca-complete"
	}
	return status.Rotation, verb, nil
}
