package fieldbugs

import (
	"context"
	"time"
)

// ShortTTL keeps blobs of alpha for half a minute.
const ShortTTL = "e2e/fieldbugs/shoots/short-ttl.yaml"

// sharedLayer is a layer of two images whose time is up for the first of them. All images of the testbed share that of their
// program.
func sharedLayer() Bug {
	const ttl, bound = 30 * time.Second, time.Minute
	return Bug{
		ID: "s11", Title: "a layer of two images, whose time is up for one of them",
		Reports:     []string{"distribution#2367", "distribution#4191", "distribution#4872"},
		Symptom:     "Pulls fail with unexpected EOF a TTL after the first pull: the cache says 200 and sends nothing.",
		Fault:       "none: the TTL is 30 s, and the second image is pulled 20 s after the first",
		Expectation: "A node that has nothing gets the second image, complete, while its layer is collected for the first.",
		Lane:        Full, Shoot: ShortTTL,
		Reproduce: func(ctx context.Context, r *Rig) error {
			first, err := r.newImage(ctx, "alpha")
			if err != nil {
				return err
			}
			start := time.Now()
			if err := r.until(ctx, start.Add(ttl*2/3)); err != nil {
				return err
			}
			second, err := r.newImage(ctx, "alpha")
			if err != nil {
				return err
			}
			// From here the shared layer's time is up for the first image and not for the second.
			if err := r.until(ctx, start.Add(ttl+5*time.Second)); err != nil {
				return err
			}
			for name, img := range map[string]string{"first": first.Reference, "second": second.Reference} {
				report, err := r.Pull(ctx, img, "--node", "worker2", "--fresh")
				if err != nil {
					return err
				}
				if err := r.Succeeded("the "+name+" image is pulled, complete", report); err != nil {
					return err
				}
				if err := r.Within("the pull of the "+name+" image", Slowest(report), bound); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// until waits for a moment: the time itself is what is awaited here, that of a TTL.
func (r *Rig) until(ctx context.Context, moment time.Time) error {
	timer := time.NewTimer(time.Until(moment))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
