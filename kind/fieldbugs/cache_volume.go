package fieldbugs

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/gardener-extensions/registry-cache/kind/pull"
	"github.com/gardener-extensions/registry-cache/kind/readiness"
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
			ready := readiness.Pod(&pod)
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
	const manifestGone = "the file of the manifest is deleted too"
	return Bug{
		ID: "s12", Slug: "ttl-frees-disk", Title: "an expired TTL frees the disk",
		Reports:     []string{"distribution#4957", "distribution#4249"},
		Symptom:     "The volume fills up: the files of expired blobs stay.",
		Fault:       "none: the TTL is 30 s",
		Expectation: "The files of an image, manifest and blobs, are deleted within 90 s of its pull.",
		Shoot:       ShortTTL,
		Known: &Known{Claim: manifestGone, Because: "distribution deletes the link to an expired manifest, but not its file: a few KiB of each " +
			"pulled image stay"},
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
			manifest, blobs := img.Objects[:1], img.Objects[1:]
			// If files are missing now, missing files later prove nothing.
			if found, err := r.countFiles(ctx, volume, img.Objects); err != nil || found != len(img.Objects) {
				return errors.Join(err, fmt.Errorf("%d files in the store, want %d", found, len(img.Objects)))
			}
			left := 0
			err = r.Await(ctx, "the files of all blobs are deleted", bound, func(ctx context.Context) (bool, string, error) {
				left, err = r.countFiles(ctx, volume, blobs)
				return left == 0, fmt.Sprintf("%d left", left), err
			})
			if left > 0 {
				return r.Require("the files of all blobs are deleted", false, "%v", err)
			}
			if err != nil {
				return err
			}
			if err := r.Within("the files of all blobs are deleted", time.Since(start), bound); err != nil {
				return err
			}
			left, err = r.countFiles(ctx, volume, manifest)
			if err != nil {
				return err
			}
			return r.Require(manifestGone, left == 0, "%d left", left)
		},
	}
}

func hibernatedDiskLost() Bug {
	const bound = time.Minute
	return Bug{
		ID: "s24", Slug: "hibernated-disk-lost", Title: "the Shoot wakes up, and the volume of a cache is empty",
		Reports:     []string{"local-path-provisioner#31", "local-path-provisioner#215"},
		Symptom:     "After the wake-up the cache does not start on the new disk, or serves nothing.",
		Fault:       "none: the folder of the volume is emptied while the Shoot is hibernated",
		Expectation: "Within a minute of the wake-up new images come through the cache.",
		Bound:       5 * time.Minute,
		Reproduce: func(ctx context.Context, r *Rig) error {
			volume, err := r.volumeOf(ctx, "beta")
			if err != nil {
				return err
			}
			hibernated := true
			r.Afterwards(func(ctx context.Context) error {
				if !hibernated {
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
			hibernated = false
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
