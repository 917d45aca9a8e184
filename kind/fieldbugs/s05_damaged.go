package fieldbugs

import (
	"context"
	"fmt"
	"path"
	"time"

	"github.com/gardener-extensions/registry-cache/kind/pull"
)

// damaged is what a crash, or a failing disk, leaves of what a cache has stored.
func damaged() Bug {
	const bound = 20 * time.Second
	return Bug{
		ID: "s5", Slug: "damaged-blobs", Title: "blobs in the cache's store are damaged",
		Reports:     []string{"containerd#9552", "spegel#1378", "distribution#2367"},
		Symptom:     "Every pull fails with unexpected EOF: containerd asks no other host after a mirror that answered 200.",
		Fault:       "none: on the volume one layer is truncated, one has other bytes, and the config is empty",
		Expectation: "A pull succeeds within 20 s without help, and only the damaged blobs are fetched again.",
		Lane:        Fast,
		Reproduce: func(ctx context.Context, r *Rig) error {
			img, err := r.newImage(ctx, "alpha")
			if err != nil {
				return err
			}
			if err := r.damage(ctx, img); err != nil {
				return err
			}
			report, err := r.awaitPull(ctx, img, bound)
			if err != nil {
				return err
			}
			anew, stored := BlobsBy(report, pull.CacheMiss), BlobsBy(report, pull.CacheHit)
			err = r.Require("what is damaged is fetched again, and nothing else", anew == 3 && stored == len(img.Objects)-1-3 && report.Total.Fallbacks == 0,
				"%d blobs fetched by the cache, %d from its store, %d fallbacks", anew, stored, report.Total.Fallbacks)
			if err != nil {
				return err
			}
			_, err = r.requireHit(ctx, img.Reference, "the next pull finds all of it in the store")
			return err
		},
	}
}

// damage spoils three blobs of an image on the volume of alpha's cache.
func (r *Rig) damage(ctx context.Context, img pull.Pushed) error {
	volume, err := r.volumeOf(ctx, "alpha")
	if err != nil {
		return err
	}
	n := len(img.Objects)
	config, other, cut := img.Objects[1], img.Objects[n-2], img.Objects[n-1]
	for _, argv := range [][]string{
		{"truncate", "--no-create", "--size=" + fmt.Sprint(cut.Size/2), volume.blob(cut)},
		{"truncate", "--no-create", "--size=0", volume.blob(config)},
		// Sixteen zeros in the middle of random bytes.
		{"dd", "if=/dev/zero", "of=" + volume.blob(other), "bs=1", "count=16", "seek=" + fmt.Sprint(other.Size/2), "conv=notrunc,nocreat", "status=none"},
	} {
		if _, err := r.Exec(ctx, volume.node, argv...); err != nil {
			return err
		}
	}
	return nil
}

// blob is the file of an object in a cache's volume.
func (v volume) blob(object pull.Object) string {
	hex := object.Digest[len("sha256:"):]
	return path.Join(v.folder, "docker/registry/v2/blobs/sha256", hex[:2], hex, "data")
}

// awaitPull requires that the image can be pulled on worker2 in the end, as a kubelet tries it.
func (r *Rig) awaitPull(ctx context.Context, img pull.Pushed, bound time.Duration) (*pull.Report, error) {
	const claim = "a pull succeeds without help"
	start := time.Now()
	for {
		report, err := r.Pull(ctx, img.Reference, "--node", "worker2", "--fresh")
		if err != nil {
			return report, err
		}
		if report.Total.Failed == 0 {
			return report, r.Within(claim, time.Since(start), bound)
		}
		if time.Since(start) > bound {
			return report, r.Require(claim, false, "not within %s: %v", bound, report.Err())
		}
	}
}
