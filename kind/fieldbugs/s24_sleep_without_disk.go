package fieldbugs

import (
	"context"
	"time"
)

// sleepWithoutDisk is a Shoot whose cache has lost its disk while it slept.
func sleepWithoutDisk() Bug {
	const bound = time.Minute
	return Bug{
		ID: "s24", Slug: "hibernated-disk-lost", Title: "the Shoot wakes up with an empty disk under a cache",
		Reports:     []string{"local-path-provisioner#31", "local-path-provisioner#215"},
		Symptom:     "After the wake-up the cache does not start on the new disk, or serves nothing.",
		Fault:       "none: the folder of the volume is emptied while the Shoot is hibernated",
		Expectation: "Within a minute of the wake-up new images come through the cache.",
		Lane:        Full, Bound: 5 * time.Minute,
		Reproduce: func(ctx context.Context, r *Rig) error {
			volume, err := r.volumeOf(ctx, "beta")
			if err != nil {
				return err
			}
			asleep := true
			r.Afterwards(func(ctx context.Context) error {
				if !asleep {
					return nil
				}
				_, err := r.run(ctx, []string{"shoot", "wake"})
				return err
			})
			if _, err := r.Testbed(ctx, "shoot", "hibernate"); err != nil {
				return err
			}
			if _, err := r.Exec(ctx, volume.node, "find", volume.folder, "-mindepth", "1", "-delete"); err != nil {
				return err
			}
			start := time.Now()
			if _, err := r.Testbed(ctx, "shoot", "wake"); err != nil {
				return err
			}
			asleep = false
			if err := r.awaitMirrors(ctx, "beta", bound, func(address string) bool { return address != "" }); err != nil {
				return err
			}
			if _, err := r.newImage(ctx, "beta"); err != nil {
				return err
			}
			return r.Within("new images come through the cache again", time.Since(start), bound)
		},
	}
}

func reason(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
