//go:build e2e

package e2e

import (
	"context"
	"time"

	"github.com/gardener-extensions/registry-cache/cachetest/pull"
	"github.com/gardener-extensions/registry-cache/e2e/rig"
	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

// addressChanges proves that nodes stop using the old address of a Service that has been recreated,
// and use the new one after a reconciliation.
func addressChanges() rig.Scenario {
	const maxHeal = 30 * time.Second
	var before string
	return rig.New("service-recreated",
		rig.Prove("alpha and beta are cached", func(ctx context.Context, p *rig.Run) {
			rig.Cached(rig.Alpha, rig.Beta)(ctx, p)
			before = p.Endpoints(ctx)[rig.Alpha]
		}),

		rig.Prove("alpha's Service gets another address, and nodes notice and pull directly", func(ctx context.Context, p *rig.Run) {
			p.Break(ctx, "cache/alpha", spec.RecreateService)
			proveNoticed(ctx, p, rig.Alpha)
		}),

		rig.Prove("after the next reconciliation nodes pull through the cache at the new address", func(ctx context.Context, p *rig.Run) {
			p.Reconcile(ctx, rig.Alpha, rig.Beta)
			start := time.Now()
			p.AwaitMirrors(ctx, rig.Alpha, rig.Beta)
			took, now := time.Since(start), p.Endpoints(ctx)[rig.Alpha]
			if now == before || took > maxHeal {
				p.Fatalf("nodes use %s after %s, want another address than %s within %s", now, rig.Seconds(took), before, maxHeal)
			}
			p.Evidence("the address was %s, is %s: %s", before, now, cachedWithin(ctx, p, rig.Alpha, time.Now(), runningWithin))
		}),
	)
}

// writeMirror is a bash script: it makes $2 the mirror of the upstream whose folder is $1.
const writeMirror = `mkdir -p -- "$1"
printf '` + rig.Mark + `\n[host."%s"]\n  capabilities = ["pull", "resolve"]\n' "$2" >"$1/hosts.toml"`

// recycledAddress proves that a node does not get an image of another upstream if its hosts.toml is
// old and the address in this file now belongs to that upstream's cache.
func recycledAddress() rig.Scenario {
	const pulledWithin = 10 * time.Second
	var other, img rig.Pushed
	return rig.New("recycled-address",
		rig.Prove("alpha's cache has an image, gamma has another one of the same name", func(ctx context.Context, p *rig.Run) {
			rig.Cached(rig.Alpha, rig.Beta)(ctx, p)
			other = store(ctx, p, rig.Alpha)
			twin := other
			twin.Host = rig.Gamma
			img = p.PushBeside(ctx, twin, other.Tag)
		}),

		rig.Prove("a node whose hosts.toml for gamma names alpha's cache gets gamma's image", func(ctx context.Context, p *rig.Run) {
			folder := nodeconfig.CertsDir + "/" + rig.Gamma
			p.Afterwards(ctx, func(ctx context.Context) error {
				_, err := p.Worker(1).Script(ctx, rig.UndoScript)
				return err
			})
			_, err := p.Worker(1).Script(ctx, writeMirror, folder, p.Endpoints(ctx)[rig.Alpha])
			p.Check(err)
			report := requireSource(ctx, p, img, pull.Options{Node: p.Worker(1).Name()}, pull.FromUpstream)
			p.FetchedOnce(ctx, img, accesslog.AskerNode)
			if report.Total.Fallbacks != 1 || report.Total.Slowest > pulledWithin.Seconds() {
				p.Fatalf("%s: %d fallbacks, want the node to ask alpha's cache first, and %.1fs", report.Verdict, report.Total.Fallbacks, report.Total.Slowest)
			}
			p.Evidence("refused by alpha's cache, pulled from gamma in %.2fs", report.Total.Slowest)
		}),
	)
}
