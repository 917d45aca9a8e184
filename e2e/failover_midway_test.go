//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"time"

	results "github.com/gardener-extensions/registry-cache/e2e/failover"
	"github.com/gardener-extensions/registry-cache/e2e/rig"
	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
)

const (
	// Upstreams send each answer so slowly that a pull takes some 20 s. It fails after failsAfter.
	midwayRate, midwayLayerBytes = "512Ki", 4 << 20
	failsAfter                   = 5 * time.Second
	// midwayExtra is how much longer than a direct pull one may take whose cache fails meanwhile.
	midwayExtra = 40 * time.Second
)

// failoverMidway proves that a pull whose cache fails meanwhile succeeds without help: the loop
// notices, and containerd or the kubelet tries again.
func failoverMidway() rig.Scenario {
	var direct time.Duration
	steps := []rig.Step{
		cachesThatFail(),
		rig.Prove("a direct pull is measured", func(ctx context.Context, p *rig.Run) {
			slowDown(ctx, p)
			direct = p.Pull(ctx, p.Worker(0), p.PushLayers(ctx, rig.Gamma, failoverLayers, midwayLayerBytes))
			clearFaults(ctx, p)
			p.Evidence("direct pull %s", rig.Seconds(direct))
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

// midwayPull is a pull on a worker whose cache fails meanwhile.
type midwayPull struct {
	*rig.Background
	worker *cluster.Node
	took   time.Duration // valid after the end
}

func proveMidway(ctx context.Context, p *rig.Run, f cacheFailure, direct time.Duration) {
	p.Helper()
	awaitCachesServe(ctx, p)
	slowDown(ctx, p)
	pulls := startPulls(ctx, p, f.host)
	elapse(ctx, p, time.Now().Add(failsAfter))
	f.begin(ctx, p)
	var evidence []string
	for _, pull := range pulls {
		if !f.spares(ctx, p, pull.worker) {
			pull.End()
			continue
		}
		<-pull.Ended
		evidence = append(evidence, fmt.Sprintf("%s %s", pull.worker.Name(), rig.Seconds(pull.took)))
	}
	f.end(ctx, p)
	clearFaults(ctx, p)
	for _, pull := range pulls {
		if f.spares(ctx, p, pull.worker) {
			pull.prove(ctx, p, f, direct)
		}
	}
	p.Evidence("%s: %s", f.name, strings.Join(evidence, ", "))
}

// startPulls pulls an image of its own on each worker.
func startPulls(ctx context.Context, p *rig.Run, host string) (pulls []*midwayPull) {
	p.Helper()
	for _, worker := range p.Workers() {
		img, pull := p.PushLayers(ctx, host, failoverLayers, midwayLayerBytes), &midwayPull{worker: worker}
		pull.Background = p.Background(ctx, func(ctx context.Context) (err error) {
			pull.took, err = rig.RunPod(ctx, p, worker, img)
			return err
		})
		pulls = append(pulls, pull)
	}
	return pulls
}

func (pull *midwayPull) prove(ctx context.Context, p *rig.Run, f cacheFailure, direct time.Duration) {
	p.Helper()
	if pull.Err != nil {
		p.Errorf("the pull failed: %v", pull.Err)
		return
	}
	if pull.took > direct+midwayExtra {
		p.Errorf("the pull on %s took %s, direct %s, want at most %s more",
			pull.worker.Name(), rig.Seconds(pull.took), rig.Seconds(direct), midwayExtra)
	}
	record(ctx, p, pull.worker, results.Result{Failure: f.name, MidwayDirect: direct.Seconds(), Midway: pull.took.Seconds()})
}
