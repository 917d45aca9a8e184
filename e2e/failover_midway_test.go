//go:build e2e

package e2e

import (
	"context"
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

func proveMidway(ctx context.Context, p *rig.Run, f cacheFailure, direct time.Duration) {
	p.Helper()
	awaitCachesServe(ctx, p)
	slowDown(ctx, p)
	worker, img := p.Workers()[len(p.Workers())-1], p.PushLayers(ctx, f.host, failoverLayers, midwayLayerBytes)
	if f.name == nodeGone().name {
		worker = workerBeside(ctx, p, f.host)
	}
	var took time.Duration
	pull := p.Background(ctx, func(ctx context.Context) (err error) {
		took, err = rig.RunPod(ctx, p, worker, img)
		return err
	})
	elapse(ctx, p, time.Now().Add(failsAfter))
	f.begin(ctx, p)
	<-pull.Ended
	f.end(ctx, p)
	clearFaults(ctx, p)
	switch {
	case pull.Err != nil:
		p.Errorf("the pull failed: %v", pull.Err)
	case took > direct+midwayExtra:
		p.Errorf("the pull took %s, direct %s, want at most %s more", rig.Seconds(took), rig.Seconds(direct), midwayExtra)
	}
	if pull.Err == nil {
		record(ctx, p, worker, results.Result{Failure: f.name, MidwayDirect: direct.Seconds(), Midway: took.Seconds()})
	}
	p.Evidence("%s: %s", f.name, rig.Seconds(took))
}

// workerBeside returns a worker on which the cache does not run.
func workerBeside(ctx context.Context, p *rig.Run, host string) *cluster.Node {
	p.Helper()
	own := podOf(ctx, p, host).Spec.NodeName
	for _, worker := range p.Workers() {
		if worker.Name() != own {
			return worker
		}
	}
	p.Fatalf("the shoot has no worker beside %s", own)
	return nil
}
