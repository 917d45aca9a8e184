package fieldbugs

import (
	"context"
	"path"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gardener-extensions/registry-cache/kind/fault"
)

// crashState is what a node that lost power leaves of the registry's state.
func crashState() Bug {
	const bound = time.Minute
	return Bug{
		ID: "s13", Title: "the registry's state is empty after a crash",
		Reports:     []string{"distribution#4478"},
		Symptom:     "The cache does not start any more: its scheduler-state.json is empty or half written.",
		Fault:       "cache/alpha kill; and scheduler-state.json is emptied before",
		Expectation: "The cache is ready within a minute, and what it had stored is still served.",
		Lane:        Full,
		Reproduce: func(ctx context.Context, r *Rig) error {
			img, err := r.newImage(ctx, "alpha")
			if err != nil {
				return err
			}
			before, err := r.cachePod(ctx, "alpha")
			if err != nil {
				return err
			}
			volume, err := r.volumeOf(ctx, "alpha")
			if err != nil {
				return err
			}
			start := time.Now()
			if _, err := r.Exec(ctx, volume.node, "truncate", "--size=0", path.Join(volume.folder, "scheduler-state.json")); err != nil {
				return err
			}
			if err := r.Break(ctx, "cache/alpha", fault.Kill); err != nil {
				return err
			}
			if err := r.awaitCache(ctx, "alpha", bound, func(pod corev1.Pod) bool { return pod.UID != before.UID }); err != nil {
				return err
			}
			if err := r.Within("the cache is ready again", time.Since(start), bound); err != nil {
				return err
			}
			_, err = r.requireHit(ctx, img.Reference, "what it had stored is still served")
			return err
		},
	}
}
