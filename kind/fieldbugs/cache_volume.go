package fieldbugs

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/gardener/gardener/pkg/utils/kubernetes/health"

	"github.com/gardener-extensions/registry-cache/kind/pull"
)

func diskFull() Bug {
	const bound = 10 * time.Second
	return Bug{
		ID: "s10", Slug: "volume-full", Title: "the cache's volume is full",
		Reports:     []string{"distribution#1140", "distribution#4381", "distribution#3539"},
		Symptom:     "Pulls repeatedly fail in the middle of a layer.",
		Fault:       "cache/alpha disk-full",
		Expectation: "A pull through the cache succeeds within 10 s, and the cache stays ready. It stores images again when there is space.",
		Reproduce: func(ctx context.Context, r *Rig) error {
			if err := r.Break(ctx, "cache/alpha", "disk-full"); err != nil {
				return err
			}
			img, err := r.Push(ctx, "alpha", "--size", "8Mi")
			if err != nil {
				return err
			}
			report, err := r.requirePull(ctx, img.Reference, "a pull succeeds while the volume is full", "--node", "worker")
			if err != nil {
				return err
			}
			past := report.Total.Fallbacks
			if err := r.Require("the image comes through the cache", past == 0, "%d fallbacks", past); err != nil {
				return err
			}
			if err := r.Within("a pull while the volume is full", Slowest(report), bound); err != nil {
				return err
			}
			pod, err := r.cachePod(ctx, "alpha")
			if err != nil {
				return err
			}
			ready := health.IsPodReady(&pod)
			if err := r.Require("the cache stays ready", ready, "ready: %t", ready); err != nil {
				return err
			}
			if err := r.DeleteFaults(ctx); err != nil {
				return err
			}
			return r.requireStores(ctx, "after the fault, the cache stores images again")
		},
	}
}

func (r *Rig) countFiles(ctx context.Context, volume volume, objects []pull.Object) (int, error) {
	words := []string{"find", volume.folder, "-name", "data", "("}
	for i, object := range objects {
		if i > 0 {
			words = append(words, "-o")
		}
		words = append(words, "-path", "*/"+object.Digest[len("sha256:"):]+"/data")
	}
	out, err := r.Exec(ctx, volume.node, append(words, ")")...)
	return len(strings.Fields(out)), err
}

func freesDisk() Bug {
	const bound = 90 * time.Second
	return Bug{
		ID: "s12", Slug: "ttl-frees-disk", Title: "an expired TTL frees the disk",
		Reports:     []string{"distribution#4957", "distribution#4249"},
		Symptom:     "The volume fills up: the files of expired blobs stay.",
		Fault:       "none: the TTL is 30 s",
		Expectation: "The files of an image, manifest and blobs, are deleted within 90 s of its pull.",
		Shoot:       ShortTTL,
		Reproduce: func(ctx context.Context, r *Rig) error {
			img, err := r.newImage(ctx, "alpha")
			if err != nil {
				return err
			}
			start := time.Now()
			volume, err := r.volumeOf(ctx, "alpha")
			if err != nil {
				return err
			}
			// If files are missing now, missing files later prove nothing.
			if found, err := r.countFiles(ctx, volume, img.Objects); err != nil || found != len(img.Objects) {
				return errors.Join(err, fmt.Errorf("%d files in the store, want %d", found, len(img.Objects)))
			}
			left := 0
			const claim = "the files of manifest and blobs are deleted"
			err = r.Await(ctx, claim, bound, func(ctx context.Context) (bool, string, error) {
				left, err = r.countFiles(ctx, volume, img.Objects)
				return left == 0, fmt.Sprintf("%d left", left), err
			})
			if left > 0 {
				return r.Require(claim, false, "%v", err)
			}
			if err != nil {
				return err
			}
			return r.Within(claim, time.Since(start), bound)
		},
	}
}

func reason(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
