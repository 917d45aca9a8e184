//go:build e2e

package e2e

import (
	"context"
	"strings"


	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

// removal is the removal of upstreams, under way while the scenario looks.
type removal struct {
	order   *cleaning
	pulls   *stream
	flow    *background
	release func(ctx context.Context) error
}

// remove lets gardenlet take the upstreams away, so that those that remain are left, and returns when the Services of the
// removed ones have vanished. gardener-node-agent is held meanwhile, and images of alpha are pulled.
func remove(ctx context.Context, p *scenarioRun, removed, remain []string) *removal {
	p.Helper()
	r := &removal{order: watchCleaning(ctx, p, removed...), release: p.HoldNodeAgents(ctx)}
	r.pulls = pullContinuously(ctx, p, alpha)
	r.flow = p.Background(ctx, func(ctx context.Context) error { return reconcile(ctx, p, remain...) })
	r.order.awaitVanished(ctx, p, r.flow)
	return r
}

// finish lets gardener-node-agent do its part, and proves that all of it succeeded and no pull took long.
func (r *removal) finish(ctx context.Context, p *scenarioRun, remain ...string) {
	p.Helper()
	p.Check(r.release(ctx))
	p.Join(ctx, r.flow, reconciled(remain...), reconcileTimeout)
	r.pulls.end(p, alpha, maxPull)
}

// removeUpstream proves that removing one upstream cleans the nodes first, and touches nothing else.
func removeUpstream() scenario {
	var (
		others  foreign
		removed *removal
		beforeB = map[string]string{}
		betaImg pushed
	)
	onlyBeta := func(ctx context.Context, p *scenarioRun) { proveOnlyBeta(ctx, p, beforeB) }
	return newScenario("remove-upstream",
		step{"alpha and beta are cached, and nodes have foreign files", func(ctx context.Context, p *scenarioRun) {
			cached(alpha, beta)(ctx, p)
			others = putForeignFiles(ctx, p)
			betaImg = p.Push(ctx, beta)
			p.Pull(ctx, p.Worker(0), betaImg)
			p.FetchedOnce(ctx, betaImg, accesslog.AskerCache)
			for _, worker := range p.Workers() {
				beforeB[worker.Name()] = p.Fingerprint(ctx, worker, hostsPath(beta))
			}
		}},
		step{"alpha is removed while its images are pulled", func(ctx context.Context, p *scenarioRun) {
			removed = remove(ctx, p, []string{alpha}, []string{beta})
		}},
		step{"the cleaner alone took alpha off every worker and left beta as it was", onlyBeta},
		step{"it ran on every worker before alpha's Service vanished", func(ctx context.Context, p *scenarioRun) {
			removed.order.proveOrder(ctx, p)
		}},
		step{"that stays so when gardener-node-agent has done its part", func(ctx context.Context, p *scenarioRun) {
			removed.finish(ctx, p, beta)
			p.AwaitMirrors(ctx, beta)
			onlyBeta(ctx, p)
			p.Evidence("alpha's hosts.toml and arguments gone, beta's hosts.toml untouched")
		}},
		step{"beta's image is still a hit", func(ctx context.Context, p *scenarioRun) {
			p.Pull(ctx, p.Worker(1), betaImg)
			p.FetchedOnce(ctx, betaImg, accesslog.AskerCache)
			p.Evidence("beta still a hit")
		}},
		step{"no cleaner and no volume of alpha is left", func(ctx context.Context, p *scenarioRun) {
			p.NoCleanerLeft(ctx)
			removed.order.proveClaimsGone(ctx, p)
		}},
		step{"foreign files are untouched", func(ctx context.Context, p *scenarioRun) { others.proveUntouched(ctx, p) }},
		step{"pulls of alpha go direct, in time", func(ctx context.Context, p *scenarioRun) {
			p.ProveDirect(ctx, alpha, maxPull)
		}},
	)
}

// proveOnlyBeta proves that workers have nothing of alpha, and beta's file as it was before.
func proveOnlyBeta(ctx context.Context, p *scenarioRun, before map[string]string) {
	p.Helper()
	for _, worker := range p.Workers() {
		if content := p.Hosts(ctx, worker, alpha); !isAbsent(content) {
			p.Errorf("alpha's hosts.toml is on %s:\n%s", worker.Name(), content)
		}
		if now := p.Fingerprint(ctx, worker, hostsPath(beta)); now != before[worker.Name()] {
			p.Errorf("beta's hosts.toml on %s was touched: was %s, is %s", worker.Name(), before[worker.Name()], now)
		}
		for where, arguments := range map[string]string{
			unitPath:  p.File(ctx, worker, unitPath),
			"systemd": p.Systemd(ctx, worker, "ExecStart"),
		} {
			if strings.Contains(arguments, alpha) || !strings.Contains(arguments, beta+",") {
				p.Errorf("arguments of the unit on %s by %s, want beta's only: %s", worker.Name(), where, arguments)
			}
		}
	}
	if p.Failed() {
		p.FailNow()
	}
}
