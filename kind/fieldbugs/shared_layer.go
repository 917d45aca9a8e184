package fieldbugs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gardener-extensions/registry-cache/kind/pull"
)

func sharedLayer() Bug {
	const ttl, bound = 30 * time.Second, 10 * time.Second
	return Bug{
		ID: "s11", Slug: "shared-layer", Title: "two images share a layer, and the TTL of one expires",
		Reports: []string{"distribution#2367", "distribution#4191", "distribution#4872"},
		Symptom: "Pulls fail with unexpected EOF one TTL after the first pull: the cache answers 200 and sends nothing.",
		Fault:   "none: the TTL is 30 s, and the second image is pulled 20 s after the first",
		Expectation: "When the rest of the first image is deleted, the shared layers stay, since their TTL counts from the last " +
			"pull. A new node gets the complete second image through the cache.",
		Shoot: ShortTTL,
		Reproduce: func(ctx context.Context, r *Rig) error {
			first, err := r.newImage(ctx, "alpha")
			if err != nil {
				return err
			}
			start := time.Now()
			// Prepare everything before the second pull, because ten seconds later the first image expires.
			store, err := r.volumeOf(ctx, "alpha")
			if err != nil {
				return err
			}
			second, err := r.Push(ctx, "alpha", "--base", first.Reference, "--layers", "1")
			if err != nil {
				return err
			}
			shared, own := split(second, first)
			_, rest := split(first, second)
			if len(shared) == 0 || len(own) == 0 || len(rest) == 0 {
				return fmt.Errorf("%s shares %d objects with %s, they have %d and %d others: this proves nothing",
					second.Reference, len(shared), first.Reference, len(own), len(rest))
			}
			r.Note("20 s after the pull:")
			select {
			case <-time.After(time.Until(start.Add(ttl * 2 / 3))):
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			if report, err := r.Pull(ctx, second.Reference, "--node", "worker2"); err != nil || report.Total.Fallbacks+report.Total.Failed > 0 {
				return errors.Join(err, fmt.Errorf("the second image did not come through the cache: %s", report.Verdict))
			}
			if err := r.awaitCollected(ctx, store, rest, second.Objects, ttl); err != nil {
				return err
			}
			if err := r.requireAnswer(ctx, second, shared[0]); err != nil {
				return err
			}
			report, err := r.Pull(ctx, second.Reference, "--node", "worker2", "--fresh")
			if err != nil {
				return err
			}
			by := BlobsBy(report, pull.CacheHit) + BlobsBy(report, pull.CacheMiss)
			if err := r.Require("all of the second image comes through the cache",
				report.Total.Failed == 0 && report.Total.Fallbacks == 0 && report.Digest == second.Digest && by == len(second.Objects)-1,
				"%d of %d blobs, %d of them fetched again, %d fallbacks, %d failed, digest %s of %s", by, len(second.Objects)-1,
				BlobsBy(report, pull.CacheMiss), report.Total.Fallbacks, report.Total.Failed, report.Digest, second.Digest); err != nil {
				return err
			}
			return r.Within("the pull of the second image", Slowest(report), bound)
		},
	}
}

// split returns the objects that the image shares with the other image, and its remaining objects.
func split(image, other pull.Pushed) (shared, own []pull.Object) {
	for _, object := range image.Objects {
		if slices.ContainsFunc(other.Objects, func(o pull.Object) bool { return o.Digest == object.Digest }) {
			shared = append(shared, object)
		} else {
			own = append(own, object)
		}
	}
	return shared, own
}

// awaitCollected waits until the files of the rest of the first image are deleted. They must exist
// at first, and the files of the second image must still exist afterwards.
func (r *Rig) awaitCollected(ctx context.Context, store volume, rest, second []pull.Object, bound time.Duration) error {
	if found, err := r.countFiles(ctx, store, rest); err != nil || found != len(rest) {
		return errors.Join(err, fmt.Errorf("%d files of the first image in the store, want %d", found, len(rest)))
	}
	err := r.Soon(ctx, "the rest of the first image is deleted when its TTL ends", bound, func(ctx context.Context) (bool, string, error) {
		left, err := r.countFiles(ctx, store, rest)
		return left == 0, fmt.Sprintf("%d left", left), err
	})
	if err != nil {
		return err
	}
	found, err := r.countFiles(ctx, store, second)
	if err != nil {
		return err
	}
	return r.Require("the second image stays, with the shared layers", found == len(second), "%d of %d files", found, len(second))
}

// blobSum prints the SHA-256 of one response of a cache for a blob. Its arguments are the address
// of the cache, the reference of the image, and the digest in hexadecimal.
const blobSum = `path=${1#*/}; curl --silent --show-error --fail "http://$0:5000/v2/${path%:*}/blobs/sha256:$2?ns=${1%%/*}" | sha256sum`

// requireAnswer requires that the first response of alpha's cache has all bytes of a blob. A pull
// cannot check this, because containerd repeats a request after a truncated response.
func (r *Rig) requireAnswer(ctx context.Context, img pull.Pushed, blob pull.Object) error {
	address, err := r.Ask(ctx, "address", "kubectl", "shoot", "get", "--namespace=kube-system", "services", selector("alpha"),
		"--output=jsonpath={.items[*].spec.clusterIP}")
	if err != nil {
		return err
	}
	want := strings.TrimPrefix(blob.Digest, "sha256:")
	out, err := r.Exec(ctx, "worker2", "bash", "-c", blobSum, address, img.Reference, want)
	if err != nil {
		return err
	}
	got, _, _ := strings.Cut(out, " ")
	return r.Require("the cache's first answer for a shared layer is complete", got == want, "sha256:%s, want sha256:%s", got, want)
}
