//go:build e2e

package e2e

import (
	"context"
	"strconv"
	"time"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/cachetest"
	"github.com/gardener-extensions/registry-cache/e2e/rig"
)

// agedBlobs is a bash script: it adds $2 blobs to a cache's volume $1, and makes all blobs on it
// two days old. The digests of the added blobs start with 48 zeros.
const agedBlobs = `cd "$1/docker/registry/v2/blobs/sha256"
seq "$2" | awk '{printf "00/%064x\n", $1}' | xargs mkdir -p
seq "$2" | awk '{printf "00/%064x/data\n", $1}' | xargs touch
find . -name data -exec touch -d '2 days ago' {} +
chown -R --reference=. 00`

// countAged is a bash script: it prints how many of the blobs that agedBlobs added are left.
// Folders that disappear meanwhile are not an error.
const countAged = `{ find "$1" -path '*/000000000000000000000000000000000000000000000000*' -name data 2>/dev/null || true; } | wc -l`

// wakeUpStorm proves that a cache that wakes up with many overdue blobs serves pulls first and
// deletes the blobs later.
func wakeUpStorm() rig.Scenario {
	const (
		aged        = 20000
		ttl         = time.Minute
		awakeWithin = 45 * time.Second // less than the TTL, during which a started cache deletes nothing
		hitWithin   = 10 * time.Second
		newWithin   = 5 * time.Second
		freedWithin = 3 * time.Minute
	)
	caches := withTTL(ttl)
	var img rig.Pushed
	return rig.New("wake-up-storm",
		rig.Prove("the shoot hibernates, and its cache has 20,000 overdue blobs", func(ctx context.Context, p *rig.Run) {
			rig.Configured(caches...)(ctx, p)
			img = storeOnVolume(ctx, p, rig.Alpha)
			shoot, err := cachetest.ShootWith(v1alpha3.RegistryConfig{Caches: caches})
			p.Check(err)
			hibernateUntilEnd(ctx, p, shoot)
			onVolume(ctx, p, rig.Alpha, agedBlobs, strconv.Itoa(aged))
			p.Check(p.Session.Testbed.Gardenlet.WakeUp(ctx, shoot))
		}),

		rig.Prove("after the wake-up the stored image is a hit, and a new one is pulled quickly", func(ctx context.Context, p *rig.Run) {
			start := time.Now()
			p.AwaitMirrors(ctx, rig.Alpha, rig.Beta)
			if took := time.Since(start); took > awakeWithin {
				p.Fatalf("nodes use the caches %s after the wake-up, want at most %s", rig.Seconds(took), awakeWithin)
			}
			hit := proveHit(ctx, p, img)
			added := p.Push(ctx, rig.Alpha)
			pulled := p.TimedPull(ctx, p.Worker(0), added)
			if hit > hitWithin || pulled > newWithin {
				p.Fatalf("the stored image took %s, the new one %s, want at most %s and %s", rig.Seconds(hit), rig.Seconds(pulled), hitWithin, newWithin)
			}
			p.Evidence("a hit in %s; a new image in %s: %s", rig.Seconds(hit), rig.Seconds(pulled), p.Requests(ctx, added).Evidence())
		}),

		rig.Prove("the overdue blobs are deleted", func(ctx context.Context, p *rig.Run) {
			start := time.Now()
			p.Check(rig.AwaitEvery(ctx, time.Second, "the overdue blobs are deleted", freedWithin, func(ctx context.Context) (bool, string, error) {
				left := onVolume(ctx, p, rig.Alpha, countAged)
				return left == "0", left + " are left", nil
			}))
			p.Evidence("%d blobs deleted after %s", aged, rig.Seconds(time.Since(start)))
		}),
	)
}
