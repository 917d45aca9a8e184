//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/gardener-extensions/registry-cache/e2e/report"
	"github.com/gardener-extensions/registry-cache/e2e/rig"
	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

const (
	// noticedAfter is counted from the beginning of a failure. Later pulls must be about as quick as
	// direct ones.
	noticedAfter = 10 * time.Second
	// failoverLayers and failoverLayerBytes are the number and the size of the layers of all images
	// that failover compares.
	failoverLayers, failoverLayerBytes = 5, 1 << 20
	failoverTimeout                    = 20 * time.Minute
)

// failover proves, for each way in which a cache fails, that a pull takes about as long as a direct
// one once nodes have noticed the failure, and that the first pull after the recovery is a hit.
func failover() rig.Scenario {
	return rig.New("failover", eachFailure(proveFailover)...).Within(failoverTimeout)
}

func proveFailover(ctx context.Context, p *rig.Run, f cacheFailure) {
	p.Helper()
	awaitCachesServe(ctx, p)
	stored := storeForEach(ctx, p, f.host)
	f.begin(ctx, p)
	elapse(ctx, p, time.Now().Add(noticedAfter))
	var evidence []string
	for _, worker := range p.Workers() {
		if f.spares(ctx, p, worker) {
			evidence = append(evidence, proveAsQuick(ctx, p, f, worker))
		}
	}
	f.end(ctx, p)
	elapse(ctx, p, time.Now().Add(maxReturn))
	if f.evicts {
		stored = storeForEach(ctx, p, f.host)
	}
	for i, worker := range p.Workers() {
		if f.spares(ctx, p, worker) {
			p.TimedPull(ctx, worker, stored[i])
			p.FetchedOnce(ctx, stored[i], accesslog.AskerCache) // the GETs are from when it was stored
		}
	}
	p.Evidence("%s: %s; a hit %s after it", f.name, strings.Join(evidence, ", "), maxReturn)
}

// storeForEach stores one image for each worker in the cache, and returns the images. To store an
// image, it pulls the image on another worker.
func storeForEach(ctx context.Context, p *rig.Run, host string) (stored []rig.Pushed) {
	p.Helper()
	workers := p.Workers()
	for i := range workers {
		img := p.Push(ctx, host)
		p.TimedPull(ctx, workers[(i+1)%len(workers)], img)
		p.FetchedOnce(ctx, img, accesslog.AskerCache)
		stored = append(stored, img)
	}
	return stored
}

// directPull returns how long a pull from an upstream without a cache takes.
func directPull(ctx context.Context, p *rig.Run, worker *cluster.Node) time.Duration {
	p.Helper()
	return p.TimedPull(ctx, worker, p.PushLayers(ctx, rig.Gamma, failoverLayers, failoverLayerBytes))
}

// proveAsQuick compares pulls during the failure with direct pulls right before them, and returns
// the times as evidence. One pull that is quick enough suffices, because other load can only slow
// pulls down.
func proveAsQuick(ctx context.Context, p *rig.Run, f cacheFailure, worker *cluster.Node) string {
	p.Helper()
	var all []string
	for range pullsPastCache {
		direct := directPull(ctx, p, worker)
		img := p.PushLayers(ctx, f.host, failoverLayers, failoverLayerBytes)
		took := p.TimedPull(ctx, worker, img)
		p.FetchedAtMost(ctx, img, f.asker, f.gets)
		all = append(all, fmt.Sprintf("%s (direct %s)", rig.Seconds(took), rig.Seconds(direct)))
		if took <= direct+maxExtra {
			record(ctx, p, worker, report.Failover{Failure: f.name, Direct: direct.Seconds(), Took: took.Seconds()})
			return worker.Name() + " " + strings.Join(all, ", then ")
		}
	}
	p.Fatalf("pulls on %s took %s, want at most %s more than direct ones", worker.Name(), strings.Join(all, ", "), maxExtra)
	return ""
}

// failoverFile is the name of the file with the measured times. `make failover-page` writes them to
// docs/failover.md.
const failoverFile = "failover.json"

func record(ctx context.Context, p *rig.Run, worker *cluster.Node, result report.Failover) {
	p.Helper()
	result.Containerd = containerdOf(ctx, p, worker)
	p.Check(report.Record(filepath.Join(rig.Artifacts, failoverFile), result))
}
