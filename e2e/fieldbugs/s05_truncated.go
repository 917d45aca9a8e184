package fieldbugs

import (
	"context"
	"fmt"
	"path"
	"time"

	"github.com/gardener-extensions/registry-cache/kind/pull"
)

// pulledInTheEnd is the claim of bugs that a kubelet gets past by trying again.
const pulledInTheEnd = "a pull succeeds without help"

// truncated is a blob that a cache has stored, and a crash cut.
func truncated() Bug {
	const bound = 2 * time.Minute
	return Bug{
		ID: "s5", Title: "a blob that is cut in the cache's store",
		Reports:     []string{"containerd#9552", "spegel#1378", "distribution#2367"},
		Symptom:     "Every pull fails with unexpected EOF, for ever: a mirror that answered 200 is the last one that is asked.",
		Fault:       "none: the blob's file on the volume is cut to half",
		Expectation: "A pull succeeds without anybody's help within two minutes.",
		Lane:        Full,
		Known: &Known{Claim: pulledInTheEnd, Because: "containerd asks a mirror that has answered 200 again and nobody else (containerd#9552), and the " +
			"cache does not notice that a file of its store is short"},
		Reproduce: func(ctx context.Context, r *Rig) error {
			img, err := r.newImage(ctx, "alpha")
			if err != nil {
				return err
			}
			volume, err := r.volumeOf(ctx, "alpha")
			if err != nil {
				return err
			}
			layer := img.Objects[len(img.Objects)-1]
			file := path.Join(volume.folder, "docker/registry/v2/blobs/sha256", layer.Digest[7:9], layer.Digest[7:], "data")
			if _, err := r.Exec(ctx, volume.node, "truncate", "--size="+fmt.Sprint(layer.Size/2), file); err != nil {
				return err
			}
			return r.awaitPull(ctx, img, bound)
		},
	}
}

// awaitPull requires that the image can be pulled on worker2 in the end, as a kubelet tries it.
func (r *Rig) awaitPull(ctx context.Context, img pull.Pushed, bound time.Duration) error {
	start := time.Now()
	for {
		report, err := r.Pull(ctx, img.Reference, "--node", "worker2", "--fresh")
		if err != nil {
			return err
		}
		if report.Total.Failed == 0 {
			return r.Within(pulledInTheEnd, time.Since(start), bound)
		}
		if time.Since(start) > bound {
			return r.Require(pulledInTheEnd, false, "not within %s: %v", bound, report.Err())
		}
	}
}
