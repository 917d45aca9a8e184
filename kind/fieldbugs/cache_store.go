package fieldbugs

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
	"github.com/gardener-extensions/registry-cache/kind/pull"
)

func damagedBlobs() Bug {
	const bound = 20 * time.Second
	return Bug{
		ID: "s5", Slug: "damaged-blobs", Title: "blobs in the cache's store are damaged",
		Reports:     []string{"containerd#9552", "spegel#1378", "distribution#2367"},
		Symptom:     "Every pull fails with unexpected EOF: containerd tries no other host after a mirror has answered 200.",
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
			fetched, stored := BlobsBy(report, pull.CacheMiss), BlobsBy(report, pull.CacheHit)
			err = r.Require("only the damaged blobs are fetched again", fetched == 3 && stored == len(img.Objects)-1-3 && report.Total.Fallbacks == 0,
				"%d blobs fetched by the cache, %d from its store, %d fallbacks", fetched, stored, report.Total.Fallbacks)
			if err != nil {
				return err
			}
			_, err = r.requireHit(ctx, img.Reference, "the next pull gets all blobs from the store")
			return err
		},
	}
}

// damage truncates two blobs of an image on the volume of alpha's cache, and changes a third.
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
		// Overwrite 16 random bytes in the middle of the blob with zeros.
		{"dd", "if=/dev/zero", "of=" + volume.blob(other), "bs=1", "count=16", "seek=" + fmt.Sprint(other.Size/2), "conv=notrunc,nocreat", "status=none"},
	} {
		if _, err := r.Exec(ctx, volume.node, argv...); err != nil {
			return err
		}
	}
	return nil
}

func (v volume) blob(object pull.Object) string {
	hex := object.Digest[len("sha256:"):]
	return path.Join(v.folder, "docker/registry/v2/blobs/sha256", hex[:2], hex, "data")
}

// awaitPull repeats the pull of the image on worker2 until it succeeds, like a kubelet, and
// requires that this takes at most the bound.
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

func warmHit() Bug {
	return Bug{
		ID: "s1", Slug: "warm-hit", Title: "a second node gets all blobs from the cache, and a moved tag is noticed",
		Reports: []string{"gardener#3064", "distribution#4050", "spegel#859"},
		Symptom: "Rate limits are hit although there is a cache, or nodes keep using an old latest.",
		Fault:   "none: the tag is pushed again",
		Expectation: "The second node sends no GET to the upstream. A tag that was pushed again gives the new image at once, " +
			"and the old digest is still served.",
		Reproduce: func(ctx context.Context, r *Rig) error {
			img, err := r.newImage(ctx, "alpha")
			if err != nil {
				return err
			}
			report, err := r.requireHit(ctx, img.Reference, "the second node's blobs come from the cache's store")
			if err != nil {
				return err
			}
			gets := report.Total.Upstream.CacheGets + report.Total.Upstream.NodeGets
			heads := report.Total.Upstream.CacheHeads + report.Total.Upstream.NodeHeads
			if err := r.Require("the upstream gets no GET for the second node", gets == 0 && heads <= 1, "%d GETs, %d HEADs", gets, heads); err != nil {
				return err
			}
			repository, _, _ := strings.Cut(strings.TrimPrefix(img.Reference, host("alpha")+"/"), ":")
			again, err := r.Push(ctx, "alpha", "--name", repository+":latest")
			if err != nil {
				return err
			}
			if report, err = r.Pull(ctx, again.Reference, "--node", "worker2", "--fresh"); err != nil {
				return err
			}
			misses := BlobsBy(report, pull.CacheMiss)
			if err := r.Require("a tag that was pushed again gives the new image, through the cache",
				report.Digest == again.Digest && misses > 0 && report.Total.Fallbacks == 0, "%d blobs fetched by the cache", misses); err != nil {
				return err
			}
			_, err = r.requireHit(ctx, host("alpha")+"/"+repository+"@"+img.Digest, "the old digest is still served")
			return err
		},
	}
}

func crashState() Bug {
	const ready, gone = 20 * time.Second, time.Minute // the TTL is 30 s
	return Bug{
		ID: "s13", Slug: "state-lost", Title: "files of the registry's state are empty after a crash",
		Reports:     []string{"distribution#4478"},
		Symptom:     "The cache no longer starts, because its state is empty, or it never deletes the blobs that it had stored.",
		Fault:       "cache/alpha stop; all links of tags and layers on its volume are emptied; cache/alpha kill",
		Expectation: "The cache is ready within 20 s, serves stored images, and deletes them when their TTL expires.",
		Shoot:       ShortTTL,
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
			// Suspend the process first, so that it cannot write its state when it is killed.
			if err := r.Break(ctx, "cache/alpha", spec.Stop); err != nil {
				return err
			}
			links := []string{"find", volume.folder, "-name", "link", "-size", "+0"}
			if out, err := r.Exec(ctx, volume.node, append(links, "-print", "-exec", "truncate", "--size=0", "{}", "+")...); err != nil || out == "" {
				return errors.Join(err, fmt.Errorf("%s has no link with content, so this proves nothing", volume.folder))
			}
			start := time.Now()
			if err := r.Break(ctx, "cache/alpha", spec.Kill); err != nil {
				return err
			}
			if err := r.awaitCache(ctx, "alpha", ready, before); err != nil {
				return err
			}
			if err := r.Within("the cache is ready again", time.Since(start), ready); err != nil {
				return err
			}
			if _, err := r.requireHit(ctx, img.Reference, "stored images are still served"); err != nil {
				return err
			}
			layer := img.Objects[len(img.Objects)-1].Digest[len("sha256:"):]
			return r.Soon(ctx, "stored blobs are deleted when their TTL expires", gone, func(ctx context.Context) (bool, string, error) {
				out, err := r.Exec(ctx, volume.node, "find", volume.folder, "-path", "*/"+layer+"/data")
				return strings.TrimSpace(out) == "", strings.TrimSpace(out), err
			})
		},
	}
}
