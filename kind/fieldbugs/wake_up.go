package fieldbugs

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// hibernateWhile hibernates the Shoot, calls the function, and wakes up the Shoot.
func (r *Rig) hibernateWhile(ctx context.Context, act func() error) error {
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
	if err := act(); err != nil {
		return err
	}
	_, err := r.Testbed(ctx, "shoot", "wake")
	hibernated = err != nil
	return err
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
			var start time.Time
			err = r.hibernateWhile(ctx, func() error {
				_, err := r.Exec(ctx, volume.node, "find", volume.folder, "-mindepth", "1", "-delete")
				start = time.Now()
				return err
			})
			if err != nil {
				return err
			}
			if err := r.awaitMirrors(ctx, "beta", bound, hasMirror); err != nil {
				return err
			}
			if _, err := r.newImage(ctx, "beta"); err != nil {
				return err
			}
			return r.Within("new images come through the cache again", time.Since(start), bound)
		},
	}
}

// agedBlobs is a bash script: it adds $2 blobs to a cache's volume $1, and makes all blobs on it
// two days old. The digests of the added blobs start with 48 zeros.
const agedBlobs = `cd "$1/docker/registry/v2/blobs/sha256"
seq "$2" | awk '{printf "00/%064x\n", $1}' | xargs mkdir -p
seq "$2" | awk '{printf "00/%064x/data\n", $1}' | xargs touch
find . -name data -exec touch -d '2 days ago' {} +
chown -R --reference=. 00`

// countAged is a bash script: it prints how many of these blobs are left. Folders that disappear
// meanwhile are no error.
const countAged = `find "$1" -path '*/000000000000000000000000000000000000000000000000*' -name data 2>/dev/null | wc -l`

func wakeUpStorm() Bug {
	const (
		aged   = 20000
		awake  = 45 * time.Second // less than the TTL, during which a started cache deletes nothing
		stored = 10 * time.Second
		pulled = 5 * time.Second
		freed  = 3 * time.Minute
	)
	return Bug{
		ID: "s28", Slug: "wake-up-storm", Title: "the Shoot wakes up, and 20,000 blobs in the cache are overdue",
		Reports: []string{"distribution#4659", "distribution#4352"},
		Symptom: "After the wake-up the cache deletes what nodes pull right then, and pulls wait for the deletions.",
		Fault:   "none: 20,000 blobs are added to the volume while the Shoot is hibernated, and all blobs are made two days old",
		Expectation: "After the wake-up the image that was stored before is a hit within 10 s, and a new one is pulled within 5 s. The " +
			"overdue blobs are deleted within three minutes: the first minute belongs to the nodes.",
		Shoot: OneMinuteTTL,
		Bound: 6 * time.Minute,
		Reproduce: func(ctx context.Context, r *Rig) error {
			img, err := r.newImage(ctx, "alpha")
			if err != nil {
				return err
			}
			volume, err := r.volumeOf(ctx, "alpha")
			if err != nil {
				return err
			}
			if err := r.hibernateWhile(ctx, func() error {
				_, err := r.Exec(ctx, volume.node, "bash", "-c", agedBlobs, "bash", volume.folder, strconv.Itoa(aged))
				return err
			}); err != nil {
				return err
			}
			if err := r.awaitMirrors(ctx, "alpha", awake, hasMirror); err != nil {
				return err
			}
			report, err := r.requireHit(ctx, img.Reference, "the image is still a hit")
			if err != nil {
				return err
			}
			if err := r.Within("its pull", Slowest(report), stored); err != nil {
				return err
			}
			_, report, err = r.pushAndPull(ctx, "alpha", "--node", "worker")
			if err != nil {
				return err
			}
			if err := r.Succeeded("a new image is pulled", report); err != nil {
				return err
			}
			if err := r.Within("a pull of a new image", Slowest(report), pulled); err != nil {
				return err
			}
			return r.Soon(ctx, "the overdue blobs are deleted", freed, func(ctx context.Context) (bool, string, error) {
				out, err := r.Exec(ctx, volume.node, "bash", "-c", countAged, "bash", volume.folder)
				left, invalid := strconv.Atoi(strings.TrimSpace(out))
				return left == 0, fmt.Sprintf("%d of %d left", left, aged), errors.Join(err, invalid)
			})
		},
	}
}
