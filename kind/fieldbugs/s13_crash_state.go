package fieldbugs

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
)

// crashState is what a node that lost power leaves of the registry's state.
func crashState() Bug {
	const ready, gone = 20 * time.Second, time.Minute // the TTL is 30 s
	const collected = "what it had stored is collected when its time is up"
	return Bug{
		ID: "s13", Slug: "state-lost", Title: "the registry's state is empty after a crash",
		Reports:     []string{"distribution#4478"},
		Symptom:     "The cache no longer starts, because its scheduler-state.json is empty, or it never collects what it had stored.",
		Fault:       "cache/alpha stop; cache/alpha kill",
		Expectation: "The cache is ready within 20 s, serves stored images, and collects them when their TTL expires.",
		Lane:        Full, Shoot: ShortTTL,
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
			// Stopped, it cannot write its state when it ends, as in a crash.
			if err := r.Break(ctx, "cache/alpha", spec.Stop); err != nil {
				return err
			}
			state := path.Join(volume.folder, "scheduler-state.json")
			if _, err := r.Exec(ctx, volume.node, "truncate", "--size=0", state); err != nil {
				return err
			}
			start := time.Now()
			if err := r.Break(ctx, "cache/alpha", spec.Kill); err != nil {
				return err
			}
			if out, err := r.Exec(ctx, volume.node, "stat", "--format=%s", state); err != nil || strings.TrimSpace(out) != "0" {
				return errors.Join(err, fmt.Errorf("the state has %s bytes after the crash, want 0", strings.TrimSpace(out)))
			}
			if err := r.awaitCache(ctx, "alpha", ready, func(pod corev1.Pod) bool { return pod.UID != before.UID }); err != nil {
				return err
			}
			if err := r.Within("the cache is ready again", time.Since(start), ready); err != nil {
				return err
			}
			if _, err := r.requireHit(ctx, img.Reference, "what it had stored is still served"); err != nil {
				return err
			}
			layer := img.Objects[len(img.Objects)-1].Digest[len("sha256:"):]
			return r.Soon(ctx, collected, gone, func(ctx context.Context) (bool, string, error) {
				out, err := r.Exec(ctx, volume.node, "find", volume.folder, "-path", "*/"+layer+"/data")
				return strings.TrimSpace(out) == "", strings.TrimSpace(out), err
			})
		},
	}
}
