//go:build e2e

package e2e

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gardener-extensions/registry-cache/e2e/report"
	"github.com/gardener-extensions/registry-cache/e2e/rig"
	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

const (
	// Upstreams send each answer so slowly that a pull takes more than 30 s. The failure begins when
	// the pull has run for failsAfter. The pull must still run once the failure is in effect, which
	// takes seconds for a lost node.
	midwayRate, midwayLayerBytes = "256Ki", 4 << 20
	failsAfter                   = 5 * time.Second
	// midwayExtra bounds how much longer than a direct pull a pull may take if the cache fails
	// meanwhile.
	midwayExtra = 40 * time.Second
)

// failoverMidway proves that a pull succeeds without help if the cache fails meanwhile: the
// script's loop notices the failure, and containerd or the kubelet tries again.
func failoverMidway() rig.Scenario {
	direct := map[string]time.Duration{} // by worker
	steps := []rig.Step{
		cachesThatFail(),
		rig.Prove("direct pulls are measured", func(ctx context.Context, p *rig.Run) {
			slowDown(ctx, p)
			for _, pull := range startPulls(ctx, p, rig.Gamma) {
				direct[pull.worker.Name()] = pull.await(p)
				p.Evidence("direct pull on %s %s", pull.worker.Name(), rig.Seconds(pull.took))
			}
			clearFaults(ctx, p)
		}),
	}
	for _, f := range failures() {
		steps = append(steps, rig.Prove(f.name, func(ctx context.Context, p *rig.Run) { proveMidway(ctx, p, f, direct) }))
	}
	return rig.New("failover-midway", steps...).Within(failoverTimeout)
}

func slowDown(ctx context.Context, p *rig.Run) {
	p.Helper()
	for _, host := range []string{rig.Alpha, rig.Beta, rig.Gamma} {
		p.BreakWith(ctx, "upstream/"+rig.Label(host), spec.Slow, map[string][]string{"rate": {midwayRate}})
	}
}

func proveMidway(ctx context.Context, p *rig.Run, f cacheFailure, direct map[string]time.Duration) {
	p.Helper()
	awaitCachesServe(ctx, p)
	slowDown(ctx, p)
	pulls := startPulls(ctx, p, f.host)
	elapse(ctx, p, time.Now().Add(failsAfter))
	f.begin(ctx, p)
	pulls = slices.DeleteFunc(pulls, func(pull *midwayPull) bool {
		lost := !f.spares(ctx, p, pull.worker)
		if lost {
			pull.End()
		}
		return lost
	})
	for _, pull := range pulls {
		pull.proveRunning(p)
	}
	for _, pull := range pulls {
		pull.await(p)
	}
	f.end(ctx, p)
	clearFaults(ctx, p)
	// Of the workers with the same version of containerd, the slowest one is recorded last, and its
	// time is kept.
	slices.SortFunc(pulls, func(a, b *midwayPull) int { return cmp.Compare(a.took, b.took) })
	var evidence []string
	for _, pull := range pulls {
		pull.prove(ctx, p, f, direct[pull.worker.Name()])
		evidence = append(evidence, fmt.Sprintf("%s %s", pull.worker.Name(), rig.Seconds(pull.took)))
	}
	p.Evidence("%s: %s", f.name, strings.Join(evidence, ", "))
}

// midwayPull is a pull on one worker.
type midwayPull struct {
	*rig.Background
	worker *cluster.Node
	image  rig.Pushed
	took   time.Duration // valid once Ended is closed
}

// startPulls starts a pull of a new image on each worker, and returns the pulls.
func startPulls(ctx context.Context, p *rig.Run, host string) (pulls []*midwayPull) {
	p.Helper()
	for _, worker := range p.Workers() {
		pulls = append(pulls, &midwayPull{worker: worker, image: p.PushLayers(ctx, host, failoverLayers, midwayLayerBytes)})
	}
	for _, pull := range pulls {
		pull.Background = p.Background(ctx, func(ctx context.Context) (err error) {
			pull.took, err = rig.RunPod(ctx, p, pull.worker, pull.image)
			return err
		})
	}
	return pulls
}

func (pull *midwayPull) proveRunning(p *rig.Run) {
	p.Helper()
	select {
	case <-pull.Ended:
		p.Fatalf("the pull on %s had ended when the failure began, after %s (%v)", pull.worker.Name(), rig.Seconds(pull.took), pull.Err)
	default:
	}
}

// await returns how long the pull took. RunPod bounds the wait.
func (pull *midwayPull) await(p *rig.Run) time.Duration {
	p.Helper()
	<-pull.Ended
	if pull.Err != nil {
		p.Fatalf("the pull on %s failed: %v", pull.worker.Name(), pull.Err)
	}
	return pull.took
}

// prove proves that the cache fetched a part of the image, and that the pull was not much slower
// than a direct one.
func (pull *midwayPull) prove(ctx context.Context, p *rig.Run, f cacheFailure, direct time.Duration) {
	p.Helper()
	if len(p.Requests(ctx, pull.image).Blobs().Gets().By(accesslog.AskerCache)) == 0 {
		p.Fatalf("the cache fetched no blob of the pull on %s", pull.worker.Name())
	}
	if pull.took > direct+midwayExtra {
		p.Fatalf("the pull on %s took %s, direct %s, want at most %s more",
			pull.worker.Name(), rig.Seconds(pull.took), rig.Seconds(direct), midwayExtra)
	}
	record(ctx, p, pull.worker, report.Failover{Failure: f.name, MidwayDirect: direct.Seconds(), Midway: pull.took.Seconds()})
}
