package fieldbugs

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/gardener-extensions/registry-cache/kind/pull"
)

// files counts those that the store has of objects.
func (r *Rig) files(ctx context.Context, volume volume, objects []pull.Object) (int, error) {
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

// freesDisk is a TTL that gives space back.
func freesDisk() Bug {
	const bound = 90 * time.Second
	const manifestGone = "the file of the manifest is gone, too"
	return Bug{
		ID: "s12", Slug: "ttl-frees-disk", Title: "an expired TTL frees the disk",
		Reports:     []string{"distribution#4957", "distribution#4249"},
		Symptom:     "The volume fills up: the files of expired blobs stay.",
		Fault:       "none: the TTL is 30 s",
		Expectation: "The files of an image, manifest and blobs, are deleted within 90 s of its pull.",
		Lane:        Full, Shoot: ShortTTL,
		Known: &Known{Claim: manifestGone, Because: "distribution deletes the link to a manifest when its time is up, and not its file: some KiB stay of " +
			"each image that was ever pulled"},
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
			// They must be there, or their absence proves nothing.
			if found, err := r.files(ctx, volume, img.Objects); err != nil || found != len(img.Objects) {
				return errors.Join(err, fmt.Errorf("%d files in the store, want %d", found, len(img.Objects)))
			}
			left := 0
			err = r.Await(ctx, "the files of all blobs are gone", bound, func(ctx context.Context) (bool, string, error) {
				left, err = r.files(ctx, volume, blobs)
				return left == 0, fmt.Sprintf("%d left", left), err
			})
			if left > 0 {
				return r.Require("the files of all blobs are gone", false, "%v", err)
			}
			if err != nil {
				return err
			}
			if err := r.Within("the files of all blobs are gone", time.Since(start), bound); err != nil {
				return err
			}
			left, err = r.files(ctx, volume, manifest)
			if err != nil {
				return err
			}
			return r.Require(manifestGone, left == 0, "%d left", left)
		},
	}
}
