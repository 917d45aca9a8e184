package fieldbugs

import (
	"context"
)

// authorityRotated is a rotation of the certificate authorities.
func authorityRotated() Bug {
	return Bug{
		ID: "s18", Title: "the certificate authorities are rotated",
		Reports:     []string{"gardener#10375", "gardener#10831"},
		Symptom:     "Pulls through the cache fail with x509 between the two phases of a rotation, or after it.",
		Fault:       "none: gardenlet rotates",
		Expectation: "In each phase all nodes pull through the cache.",
		Lane:        Full, Shoot: HTTPS,
		Reproduce: func(ctx context.Context, r *Rig) error {
			begun := true
			r.Afterwards(func(ctx context.Context) error {
				if !begun {
					return nil
				}
				_, err := r.run(ctx, []string{"shoot", "rotate-ca-complete"})
				return err
			})
			for _, phase := range []string{"rotate-ca-start", "rotate-ca-complete"} {
				if _, err := r.Testbed(ctx, "shoot", phase); err != nil {
					return err
				}
				begun = phase == "rotate-ca-start"
				img, err := r.requireCached(ctx, "after "+phase+" new images come through the cache")
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
