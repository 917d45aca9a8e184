//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/cachetest"
	"github.com/gardener-extensions/registry-cache/e2e/rig"
	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

const (
	// shortLife is how long alpha's cache keeps a blob.
	shortLife = 5 * time.Second
	// collectedWithin bounds the time until the cache has deleted the blob.
	collectedWithin = 30 * time.Second
)

// garbageCollection proves that a cache deletes a blob after its TTL and fetches it again, that a
// cache with a TTL of 0 keeps its blobs, and that enabling garbage collection again replaces the
// cache.
func garbageCollection() rig.Scenario {
	var collected, kept rig.Pushed
	short, never := cachetest.Cache(rig.Alpha), cachetest.Cache(rig.Gamma)
	short.GarbageCollection = &v1alpha3.GarbageCollection{TTL: metav1.Duration{Duration: shortLife}}
	never.GarbageCollection = &v1alpha3.GarbageCollection{}
	return rig.New("garbage-collection",
		rig.Prove("alpha is kept for seconds, gamma forever", func(ctx context.Context, p *rig.Run) {
			p.Check(rig.UndoLeftovers(ctx, p))

			p.Afterwards(ctx, func(ctx context.Context) error { return rig.Reconcile(ctx, p, rig.Alpha, rig.Beta) })
			if _, there := p.Services(ctx)[rig.Gamma]; there {
				never.Volume = &v1alpha3.Volume{Size: ptr.To(resource.MustParse(sizesOf(ctx, p, rig.Gamma).applied))}
			}
			p.Configure(ctx, nil, short, cachetest.Cache(rig.Beta), never)
			collected, kept = p.Push(ctx, rig.Alpha), p.Push(ctx, rig.Gamma)
			for _, img := range []rig.Pushed{kept, collected} {
				p.TimedPull(ctx, p.Worker(0), img)
				p.FetchedOnce(ctx, img, accesslog.AskerCache)
			}
		}),

		rig.Prove("alpha's cache fetches a blob again after the TTL", func(ctx context.Context, p *rig.Run) {
			blob, start, stored := collected.Blobs[0], time.Now(), 0
			// A request would restart the TTL, so look at the volume instead.
			p.Await(ctx, "the cache has stored and then deleted the manifest and the blobs", collectedWithin, func(ctx context.Context) (bool, string, error) {
				left := storedOnVolume(ctx, p, rig.Alpha, append(collected.Blobs, collected.Digest)...)
				stored = max(stored, left)
				return stored > 0 && left == 0, fmt.Sprintf("%d left on the volume, which had %d", left, stored), nil
			})
			took := time.Since(start)
			if status := blobStatus(ctx, p, p.Worker(1), p.Endpoints(ctx)[rig.Alpha], collected); status != http.StatusOK {
				p.Fatalf("the cache answers %d for the deleted blob, want %d", status, http.StatusOK)
			}
			if gets := p.Requests(ctx, collected).Blobs().Gets().Filter(func(r accesslog.Record) bool { return r.Reference == blob }); len(gets) != 2 || gets[1].Time.Sub(gets[0].Time) < shortLife {
				p.Fatalf("want two GETs of the blob, at least %s apart, got %v", shortLife, gets)
			}
			p.Evidence("TTL %s: deleted after %s, then fetched again", shortLife, rig.Seconds(took))
		}),

		rig.Prove("gamma's cache still has its blobs", func(ctx context.Context, p *rig.Run) {
			p.TimedPull(ctx, p.Worker(1), kept)
			if stored, want := storedOnVolume(ctx, p, rig.Gamma, append(kept.Blobs, kept.Digest)...), len(kept.Blobs)+1; stored != want {
				p.Fatalf("%d of %d manifests and blobs are on the volume", stored, want)
			}
			p.Evidence("TTL 0s: still a hit, %s", p.FetchedOnce(ctx, kept, accesslog.AskerCache))
		}),

		rig.Prove("gamma's cache is replaced when garbage collection is enabled again", func(ctx context.Context, p *rig.Run) {
			again := never
			again.GarbageCollection = nil
			p.Configure(ctx, nil, short, cachetest.Cache(rig.Beta), again)
			if left := onVolume(ctx, p, rig.Gamma, `find "$1" -path "$2"`, "*/"+strings.TrimPrefix(kept.Blobs[0], "sha256:")+"/data"); left != "" {
				p.Fatalf("the old volume is still used: it has %s", left)
			}
			img := p.Push(ctx, rig.Gamma)
			p.TimedPull(ctx, p.Worker(0), img)
			p.Evidence("0s to 168h, which only the admission refuses: the cache starts empty, %s", p.FetchedOnce(ctx, img, accesslog.AskerCache))
		}),
	)
}
