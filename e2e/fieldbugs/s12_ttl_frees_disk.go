package fieldbugs

import (
	"context"
	"path"
	"strings"
	"time"
)

// freesDisk is a TTL that gives space back.
func freesDisk() Bug {
	const bound = 90 * time.Second
	return Bug{
		ID: "s12", Title: "a TTL gives the disk back",
		Reports:     []string{"distribution#4957", "distribution#4249"},
		Symptom:     "The volume fills up although blobs expire: their files stay.",
		Fault:       "none: the TTL is 30 s",
		Expectation: "The files of all blobs of an image are gone 90 s after its pull at most.",
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
			layer := img.Objects[len(img.Objects)-1].Digest
			folder := path.Join(volume.folder, "docker/registry/v2/blobs/sha256", layer[7:9])
			if _, err := r.Exec(ctx, volume.node, "ls", path.Join(folder, layer[7:], "data")); err != nil {
				return err // it must be there, or its absence proves nothing
			}
			err = r.Await(ctx, "the blob's file is gone", bound, func(ctx context.Context) (bool, string, error) {
				out, err := r.Exec(ctx, volume.node, "find", volume.folder, "-path", "*"+layer[7:]+"*", "-name", "data")
				return err == nil && strings.TrimSpace(out) == "", out, err
			})
			if err != nil {
				return err
			}
			return r.Within("the blob's file is gone", time.Since(start), bound)
		},
	}
}
