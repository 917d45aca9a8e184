//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/gardener/gardener/pkg/utils/kubernetes/health"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/cachetest"
	"github.com/gardener-extensions/registry-cache/cachetest/pull"
	"github.com/gardener-extensions/registry-cache/e2e/rig"
	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

// damageBlobs is a bash script: of the blobs $2, $3 and $4 on the volume $1 it empties the first,
// replaces 16 bytes in the middle of the second, and truncates the third.
const damageBlobs = `
file() { echo "$folder/docker/registry/v2/blobs/sha256/${1:0:2}/$1/data"; }
folder=$1
truncate --no-create --size=0 "$(file "$2")"
dd if=/dev/zero of="$(file "$3")" bs=1 count=16 seek=$(($(stat --format %s "$(file "$3")") / 2)) conv=notrunc,nocreat status=none
truncate --no-create --size=$(($(stat --format %s "$(file "$4")") / 2)) "$(file "$4")"`

// damagedBlobs proves that a cache notices damage on its volume, and fetches the damaged blobs
// again.
func damagedBlobs() rig.Scenario {
	const pulledWithin = 20 * time.Second
	var img rig.Pushed
	return rig.New("damaged-blobs",
		rig.Prove("an image is stored, and its config and two layers are damaged", func(ctx context.Context, p *rig.Run) {
			rig.Cached(rig.Alpha, rig.Beta)(ctx, p)
			img = storeOnVolume(ctx, p, rig.Alpha)
			onVolume(ctx, p, rig.Alpha, damageBlobs, hexOf(img.Blobs[0]), hexOf(img.Blobs[2]), hexOf(img.Blobs[3]))
		}),

		rig.Prove("a pull succeeds without help, and only the damaged blobs are fetched again", func(ctx context.Context, p *rig.Run) {
			start := time.Now()
			var report *pull.Report
			p.Await(ctx, "the second worker has pulled the image", pulledWithin, func(ctx context.Context) (_ bool, _ string, err error) {
				if report, err = served(ctx, p, img, pull.Options{Node: p.Worker(1).Name(), Fresh: true}); err != nil {
					return false, "", err
				}
				return report.Err() == nil, fmt.Sprint(report.Err()), nil
			})
			fetched, stored := blobsBy(report, pull.CacheMiss), blobsBy(report, pull.CacheHit)
			if fetched != 3 || stored != len(img.Blobs)-3 || report.Total.Fallbacks != 0 {
				p.Fatalf("%d blobs fetched by the cache, %d from its store, %d fallbacks, want 3, %d and 0", fetched, stored, report.Total.Fallbacks, len(img.Blobs)-3)
			}
			p.Evidence("a pull succeeds after %s: 3 damaged blobs fetched again", rig.Seconds(time.Since(start)))
		}),

		rig.Prove("the next pull gets all blobs from the store", func(ctx context.Context, p *rig.Run) {
			requireSource(ctx, p, img, pull.Options{Node: p.Worker(1).Name(), Fresh: true}, pull.CacheHit)
		}),
	)
}

// storeOnVolume is like store, but also waits until the manifest and the blobs are on the volume.
func storeOnVolume(ctx context.Context, p *rig.Run, host string) rig.Pushed {
	p.Helper()
	img := store(ctx, p, host)
	all := append([]string{img.Digest}, img.Blobs...)
	p.Await(ctx, "the image is on the volume", 10*time.Second, func(ctx context.Context) (bool, string, error) {
		stored := storedOnVolume(ctx, p, host, all...)
		return stored == len(all), fmt.Sprintf("%d of %d files are", stored, len(all)), nil
	})
	return img
}

func hexOf(digest string) string { return strings.TrimPrefix(digest, "sha256:") }

// blobsBy returns how many configs and layers the source served.
func blobsBy(report *pull.Report, source pull.Source) (count int) {
	for _, served := range report.Pulls {
		for _, object := range served.Objects {
			if object.By == source && object.Part != pull.PartManifest && object.Part != pull.PartIndex {
				count++
			}
		}
	}
	return count
}

// volumeFull proves that images come through a cache whose volume is full.
func volumeFull() rig.Scenario {
	const pulledWithin = 10 * time.Second
	return rig.New("volume-full",
		rig.Prove("alpha and beta are cached", rig.Cached(rig.Alpha, rig.Beta)),
		rig.Prove("an image comes through the cache whose volume is full, and the cache stays ready", func(ctx context.Context, p *rig.Run) {
			p.Break(ctx, "cache/alpha", spec.DiskFull)
			img := p.PushLayers(ctx, rig.Alpha, 2, 8<<20)
			took := p.TimedPull(ctx, p.Worker(0), img)
			evidence := p.FetchedAtMost(ctx, img, accesslog.AskerCache, 2)
			if took > pulledWithin {
				p.Fatalf("the pull took %s, want at most %s", rig.Seconds(took), pulledWithin)
			}
			if pod := podOf(ctx, p, rig.Alpha); !health.IsPodReady(pod) {
				p.Fatalf("the cache is not ready: %s", rig.PodState(pod))
			}
			p.Evidence("full volume: pull %s, %s, cache ready", rig.Seconds(took), evidence)
		}),

		rig.Prove("it stores images again when there is space", func(ctx context.Context, p *rig.Run) {
			clearFaults(ctx, p)
			p.Await(ctx, "a new image is stored", maxRestart, func(ctx context.Context) (bool, string, error) {
				img := p.Push(ctx, rig.Alpha)
				p.TimedPull(ctx, p.Worker(0), img)
				stored := storedOnVolume(ctx, p, rig.Alpha, img.Blobs...)
				return stored == len(img.Blobs), fmt.Sprintf("%d of %d blobs are", stored, len(img.Blobs)), nil
			})
			proveHit(ctx, p, store(ctx, p, rig.Alpha))
		}),
	)
}

// withTTL returns a cache for alpha with the TTL, and one for beta.
func withTTL(ttl time.Duration) []v1alpha3.RegistryCache {
	alpha := cachetest.Cache(rig.Alpha)
	alpha.GarbageCollection = &v1alpha3.GarbageCollection{TTL: metav1.Duration{Duration: ttl}}
	return []v1alpha3.RegistryCache{alpha, cachetest.Cache(rig.Beta)}
}

// blobSum prints the SHA-256 of one answer of a cache to a request for a blob.
const blobSum = `curl --silent --show-error --fail "$1" | sha256sum | cut --delimiter=' ' --fields=1`

// sharedLayer proves that a cache keeps a blob as long as an image that contains the blob is pulled
// at least once per TTL, and that it never answers with only a part of the blob.
func sharedLayer() rig.Scenario {
	const ttl, pulledWithin = 30 * time.Second, 10 * time.Second
	var first, second rig.Pushed
	var shared, rest []string // blobs of the first image
	return rig.New("shared-layer",
		rig.Prove("two images share layers, and the second one is pulled later", func(ctx context.Context, p *rig.Run) {
			rig.Configured(withTTL(ttl)...)(ctx, p)
			first = storeOnVolume(ctx, p, rig.Alpha)
			pulled := time.Now()
			second = p.PushOver(ctx, first)
			// The layers are shared, but the configs and manifests are not.
			shared, rest = first.Blobs[1:], []string{first.Blobs[0], first.Digest}
			elapse(ctx, p, pulled.Add(ttl*2/3))
			p.TimedPull(ctx, p.Worker(1), second)
			if nodes := p.Requests(ctx, second).By(accesslog.AskerNode); len(nodes) != 0 {
				p.Fatalf("the second image did not come through the cache: %s %s", nodes[0].Method, nodes[0].Path)
			}
		}),

		rig.Prove("the rest of the first image expires, the second image stays", func(ctx context.Context, p *rig.Run) {
			if stored := storedOnVolume(ctx, p, rig.Alpha, rest...); stored != len(rest) {
				p.Fatalf("%d of %d files of the first image alone are stored, so this proves nothing", stored, len(rest))
			}
			start := time.Now()
			p.Check(rig.AwaitEvery(ctx, rig.NodeInterval, "the rest of the first image is deleted", ttl, func(ctx context.Context) (bool, string, error) {
				left := storedOnVolume(ctx, p, rig.Alpha, rest...)
				return left == 0, fmt.Sprintf("%d files are left", left), nil
			}))
			all := append([]string{second.Digest}, second.Blobs...)
			if stored := storedOnVolume(ctx, p, rig.Alpha, all...); stored != len(all) {
				p.Fatalf("%d of %d files of the second image are stored", stored, len(all))
			}
			p.Evidence("the first image expired after %s more, %d shared layers stay", rig.Seconds(time.Since(start)), len(shared))
		}),

		rig.Prove("the cache's first answer for a shared layer is complete", func(ctx context.Context, p *rig.Run) {
			// A pull cannot show this, because containerd repeats a request after a truncated answer.
			url := p.Endpoints(ctx)[rig.Alpha] + "/v2/" + second.Repository + "/blobs/" + shared[0] + "?ns=" + rig.Alpha
			out, err := p.Worker(1).Script(ctx, blobSum, url)
			p.Check(err)
			if sum := strings.TrimSpace(out); sum != hexOf(shared[0]) {
				p.Fatalf("the answer has the digest sha256:%s, want %s", sum, shared[0])
			}
		}),

		rig.Prove("a new node gets the complete second image through the cache", func(ctx context.Context, p *rig.Run) {
			report, err := served(ctx, p, second, pull.Options{Node: p.Worker(1).Name(), Fresh: true})
			p.Check(err)
			p.Check(report.Err())
			hits, misses := blobsBy(report, pull.CacheHit), blobsBy(report, pull.CacheMiss)
			if hits+misses != len(second.Blobs) || report.Total.Fallbacks != 0 || report.Total.Slowest > pulledWithin.Seconds() {
				p.Fatalf("%d of %d blobs by the cache, %d fallbacks, %.1fs, want all within %s", hits+misses, len(second.Blobs), report.Total.Fallbacks,
					report.Total.Slowest, pulledWithin)
			}
			p.Evidence("the second image: %d hits, %d fetched again, pull %.2fs", hits, misses, report.Total.Slowest)
		}),
	)
}

// emptyLinks is a bash script: it empties all links of tags and layers on the volume $1, and prints
// how many had content.
const emptyLinks = `find "$1" -name link -size +0 -print -exec truncate --size=0 {} + | wc -l`

// stateLost proves that a cache works, and still deletes its blobs, when a crash has emptied the
// small files that refer to the blobs.
func stateLost() rig.Scenario {
	const ttl, readyWithin, deletedWithin = 30 * time.Second, 20 * time.Second, time.Minute
	var img rig.Pushed
	return rig.New("state-lost",
		rig.Prove("an image is stored for half a minute", func(ctx context.Context, p *rig.Run) {
			rig.Configured(withTTL(ttl)...)(ctx, p)
			img = storeOnVolume(ctx, p, rig.Alpha)
		}),

		rig.Prove("the cache crashes with empty links, and is soon ready and serves the image", func(ctx context.Context, p *rig.Run) {
			p.Break(ctx, "cache/alpha", spec.Stop) // so that it cannot write its state when it is killed
			if onVolume(ctx, p, rig.Alpha, emptyLinks) == "0" {
				p.Fatalf("the volume has no link with content, so this proves nothing")
			}
			ready := restartCache(ctx, p, rig.Alpha)
			if ready > readyWithin {
				p.Fatalf("the cache is ready after %s, want at most %s", rig.Seconds(ready), readyWithin)
			}
			p.Evidence("ready after %s, still a hit in %s", rig.Seconds(ready), rig.Seconds(proveHit(ctx, p, img)))
		}),

		rig.Prove("its blobs are deleted when their TTL expires", func(ctx context.Context, p *rig.Run) {
			start := time.Now()
			p.Check(rig.AwaitEvery(ctx, rig.NodeInterval, "the blobs are deleted", deletedWithin, func(ctx context.Context) (bool, string, error) {
				left := storedOnVolume(ctx, p, rig.Alpha, img.Blobs...)
				return left == 0, fmt.Sprintf("%d are left", left), nil
			}))
			p.Evidence("deleted after %s", rig.Seconds(time.Since(start)))
		}),
	)
}
