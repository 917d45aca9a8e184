package fieldbugs

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/gardener-extensions/registry-cache/kind/pull"
)

// anyOf are the words of find for a path with one of the image's digests, up to the closing parenthesis.
func anyOf(img pull.Pushed) []string {
	var words []string
	for i, object := range img.Objects {
		if i > 0 {
			words = append(words, "-o")
		}
		words = append(words, "-path", "*/"+object.Digest[len("sha256:"):]+"/data")
	}
	return append(words, ")")
}

// freesDisk is a TTL that gives space back.
func freesDisk() Bug {
	const bound = 90 * time.Second
	return Bug{
		ID: "s12", Title: "a TTL gives the disk back",
		Reports:     []string{"distribution#4957", "distribution#4249"},
		Symptom:     "The volume fills up although blobs expire: their files stay.",
		Fault:       "none: the TTL is 30 s",
		Expectation: "The files of manifest and blobs of an image are gone 90 s after its pull at most.",
		Lane:        Full, Shoot: ShortTTL,
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
			files := func(ctx context.Context) (int, error) {
				out, err := r.Exec(ctx, volume.node, append([]string{"find", volume.folder, "-name", "data", "("}, anyOf(img)...)...)
				return len(strings.Fields(out)), err
			}
			// They must be there, or their absence proves nothing.
			if found, err := files(ctx); err != nil || found != len(img.Objects) {
				return errors.Join(err, fmt.Errorf("%d files in the store, want %d", found, len(img.Objects)))
			}
			left := 0
			err = r.Await(ctx, "all files are gone", bound, func(ctx context.Context) (bool, string, error) {
				left, err = files(ctx)
				return left == 0, fmt.Sprintf("%d left", left), err
			})
			if left > 0 {
				return r.Require("all files are gone", false, "%v", err)
			}
			if err != nil {
				return err
			}
			return r.Within("all files are gone", time.Since(start), bound)
		},
	}
}
