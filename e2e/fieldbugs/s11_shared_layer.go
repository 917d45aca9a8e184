package fieldbugs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gardener-extensions/registry-cache/kind/pull"
)

// ShortTTL keeps blobs of alpha for half a minute.
const ShortTTL = "e2e/fieldbugs/shoots/short-ttl.yaml"

// sharedLayer is a layer of two images whose time is up for the first of them.
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
			r.Note("20 s after the pull:")
			if err := r.until(ctx, start.Add(ttl*2/3)); err != nil {
				return err
			}
			second, err := r.Push(ctx, "alpha", "--base", first.Reference, "--layers", "1")
			if err != nil {
				return err
			}
			if shared := sharedObjects(first, second); shared == 0 {
				return fmt.Errorf("%s and %s share no layer: this would prove nothing", first.Reference, second.Reference)
			}
			if report, err := r.Pull(ctx, second.Reference, "--node", "worker2"); err != nil || report.Total.Fallbacks+report.Total.Failed > 0 {
				return errors.Join(err, fmt.Errorf("the second image did not come through the cache: %s", report.Verdict))
			}
			// From here the shared layer's time is up for the first image and not for the second.
			r.Note("35 s after the first pull:")
			if err := r.until(ctx, start.Add(ttl+5*time.Second)); err != nil {
				return err
			}
			report, err := r.Pull(ctx, second.Reference, "--node", "worker2", "--fresh")
			if err != nil {
				return err
			}
			if err := r.Succeeded("the second image is pulled, complete", report); err != nil {
				return err
			}
			return r.Within("the pull of the second image", Slowest(report), bound)
		},
	}
}

// sharedObjects counts what two images have in common.
func sharedObjects(a, b pull.Pushed) int {
	count := 0
	for _, object := range a.Objects {
		if slices.ContainsFunc(b.Objects, func(o pull.Object) bool { return o.Digest == object.Digest }) {
			count++
		}
	}
	return count
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
