//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/gardener-extensions/registry-cache/e2e/rig"
	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

const (
	// maxRestart is how long a recreated cache pod may take to be ready, even if its upstream hangs.
	maxRestart = 30 * time.Second
	// maxStoredPull bounds a pull of a stored image while the upstream hangs. The time includes one
	// request for the tag, for which the cache waits 1.5 s for the upstream.
	maxStoredPull = 10 * time.Second
)

// upstreamDown proves that a cache can start while its upstream is unreachable (distribution#4038).
// The cache then serves stored images by tag, and fetches new images once the upstream answers
// again.
func upstreamDown() rig.Scenario {
	var stored rig.Pushed
	steps := []rig.Step{
		rig.Prove("alpha is cached, and an image is stored", func(ctx context.Context, p *rig.Run) {
			rig.Cached(rig.Alpha, rig.Beta)(ctx, p)
			stored = p.Push(ctx, rig.Alpha)
			p.TimedPull(ctx, p.Worker(0), stored)
			p.FetchedOnce(ctx, stored, accesslog.AskerCache)
		}),

		rig.Prove("alpha hangs, and its cache restarts", func(ctx context.Context, p *rig.Run) {
			p.Break(ctx, "upstream/"+rig.Alpha, spec.Hang)
			p.Evidence("pod ready after %s while the upstream hangs", rig.Seconds(restartCache(ctx, p, rig.Alpha)))
		}),

		rig.Prove("another node pulls the stored image by its tag, in time", func(ctx context.Context, p *rig.Run) {
			took := p.TimedPull(ctx, p.Worker(1), stored)
			if took > maxStoredPull {
				p.Fatalf("the pull took %s, want at most %s", rig.Seconds(took), maxStoredPull)
			}
			p.Evidence("still a hit, in %s: %s", rig.Seconds(took), p.FetchedOnce(ctx, stored, accesslog.AskerCache))
		}),

		rig.Prove("the upstream is back, and a new image comes through the cache", func(ctx context.Context, p *rig.Run) {
			p.Check(rig.ClearFaults(ctx, p))
			img, endpoint := p.Push(ctx, rig.Alpha), p.Endpoints(ctx)[rig.Alpha]
			url := fmt.Sprintf("%s/v2/%s/manifests/latest", endpoint, img.Repository)
			p.Await(ctx, "the cache has the manifest of a new image", maxRestart, func(ctx context.Context) (bool, string, error) {
				out, err := p.Worker(0).Exec(ctx, "curl", "--silent", "--show-error", "--max-time", "10", "--output", "/dev/null",
					"--header", "Accept: application/vnd.oci.image.manifest.v1+json", "--write-out", "%{http_code}", url)
				return strings.TrimSpace(out) == "200", out, err
			})
			p.TimedPull(ctx, p.Worker(0), img)
			p.Evidence("afterwards: %s", p.FetchedOnce(ctx, img, accesslog.AskerCache))
		}),

		rig.Prove("alpha drops packets, its cache restarts, and a stored image is pulled by its tag", func(ctx context.Context, p *rig.Run) {
			img := store(ctx, p, rig.Alpha)
			p.Break(ctx, "upstream/"+rig.Alpha, spec.Blackhole)
			restartCache(ctx, p, rig.Alpha)
			if took := proveHit(ctx, p, img); took > maxStoredPull {
				p.Fatalf("the pull took %s, want at most %s", rig.Seconds(took), maxStoredPull)
			}
			clearFaults(ctx, p)
		}).InFullLane(),
	}
	for _, outage := range outages {
		steps = append(steps, rig.Prove("a node quickly gets stored images while the upstream "+outage.name, outage.prove).InFullLane())
	}
	return rig.New("upstream-down", steps...)
}

// outage is a way in which an upstream is unreachable.
type outage struct {
	name string
	// before are the faults while images are stored, and during are the faults of the outage. A fault
	// that precedes spec.Token in during also affects the token server.
	before, during []spec.Kind
}

var outages = []outage{
	{"drops packets", nil, []spec.Kind{spec.Blackhole}},
	{"hangs", []spec.Kind{spec.Token}, []spec.Kind{spec.Token, spec.Hang}},
	{"hangs with its token server", []spec.Kind{spec.Token}, []spec.Kind{spec.Hang, spec.Token}},
}

// maxOutagePull bounds a pull of a stored image during an outage. If the image is pulled by tag,
// the cache first waits 1.5 s for the upstream.
const maxOutagePull = 5 * time.Second

func (o outage) prove(ctx context.Context, p *rig.Run) {
	for _, kind := range o.before {
		p.Break(ctx, "upstream/"+rig.Alpha, kind)
	}
	awaitFetches(ctx, p, rig.Alpha)
	var images [2]rig.Pushed
	for i := range images {
		images[i] = p.Push(ctx, rig.Alpha)
		p.TimedPull(ctx, p.Worker(0), images[i])
		registry{host: rig.Alpha}.proveOnce(ctx, p, images[i])
	}
	clearFaults(ctx, p)
	for _, kind := range o.during {
		p.Break(ctx, "upstream/"+rig.Alpha, kind)
	}
	for _, reference := range []string{images[0].ByDigest(), images[1].Reference()} {
		took := p.TimedPullOf(ctx, p.Worker(1), reference)
		if took > maxOutagePull {
			p.Fatalf("the pull of %s took %s, want at most %s", reference, rig.Seconds(took), maxOutagePull)
		}
		p.Evidence("it %s: %s in %s", o.name, reference, rig.Seconds(took))
	}
	clearFaults(ctx, p)
}
