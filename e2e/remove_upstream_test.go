//go:build e2e

package e2e

import (
	"context"
	"strings"

	"github.com/gardener-extensions/registry-cache/e2e/rig"
	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

// removal is a running removal of upstreams.
type removal struct {
	order   *cleaning
	pulls   *stream
	flow    *rig.Background
	release func(ctx context.Context) error
}

// remove makes gardenlet reconcile the shoot with only the remaining upstreams, and waits until the
// Services of the removed upstreams are deleted. Until removal.finish is called,
// gardener-node-agent is stopped and images of alpha are pulled.
func remove(ctx context.Context, p *rig.Run, removed, remain []string) *removal {
	p.Helper()
	r := &removal{order: watchCleaning(ctx, p, removed...), release: p.HoldNodeAgents(ctx)}
	r.pulls = pullContinuously(ctx, p, rig.Alpha)
	r.flow = p.Background(ctx, func(ctx context.Context) error { return rig.Reconcile(ctx, p, remain...) })
	r.order.awaitVanished(ctx, p, r.flow)
	return r
}

// finish starts gardener-node-agent, and proves that the removal succeeded and no pull was slow.
func (r *removal) finish(ctx context.Context, p *rig.Run, remain ...string) {
	p.Helper()
	p.Check(r.release(ctx))
	p.Join(ctx, r.flow, rig.Reconciled(remain...), rig.ReconcileTimeout)
	r.pulls.end(p, rig.Alpha, rig.MaxPull)
}

// removeUpstream proves that the removal of one upstream cleans the nodes first, and changes
// nothing else.
func removeUpstream() rig.Scenario {
	var (
		others  unmanagedFiles
		removed *removal
		beforeB = map[string]string{}
		betaImg rig.Pushed
	)
	onlyBeta := func(ctx context.Context, p *rig.Run) { proveOnlyBeta(ctx, p, beforeB) }
	return rig.New("remove-upstream",
		rig.Prove("alpha and beta are cached, and nodes have unmanaged files", func(ctx context.Context, p *rig.Run) {
			rig.Cached(rig.Alpha, rig.Beta)(ctx, p)
			others = putUnmanagedFiles(ctx, p)
			betaImg = p.Push(ctx, rig.Beta)
			p.TimedPull(ctx, p.Worker(0), betaImg)
			p.FetchedOnce(ctx, betaImg, accesslog.AskerCache)
			for _, worker := range p.Workers() {
				beforeB[worker.Name()] = p.Fingerprint(ctx, worker, rig.HostsPath(rig.Beta))
			}
		}),

		rig.Prove("alpha is removed while its images are pulled", func(ctx context.Context, p *rig.Run) {
			removed = remove(ctx, p, []string{rig.Alpha}, []string{rig.Beta})
		}),

		rig.Prove("the cleaner alone removed alpha from every worker and kept beta", onlyBeta),
		rig.Prove("the cleaner ran on every worker before alpha's Service was deleted", func(ctx context.Context, p *rig.Run) {
			removed.order.proveOrder(ctx, p)
		}),

		rig.Prove("gardener-node-agent keeps that state", func(ctx context.Context, p *rig.Run) {
			removed.finish(ctx, p, rig.Beta)
			p.AwaitMirrors(ctx, rig.Beta)
			onlyBeta(ctx, p)
			p.Evidence("alpha's hosts.toml and arguments gone, beta's hosts.toml unchanged")
		}),

		rig.Prove("beta's image is still a hit", func(ctx context.Context, p *rig.Run) {
			p.TimedPull(ctx, p.Worker(1), betaImg)
			p.FetchedOnce(ctx, betaImg, accesslog.AskerCache)
			p.Evidence("beta still a hit")
		}),

		rig.Prove("no cleaner and no volume of alpha is left", func(ctx context.Context, p *rig.Run) {
			p.NoCleanerLeft(ctx)
			removed.order.proveClaimsGone(ctx, p)
		}),

		rig.Prove("unmanaged files are unchanged", func(ctx context.Context, p *rig.Run) { others.proveUntouched(ctx, p) }),
		rig.Prove("pulls of alpha go directly to the upstream, in time", func(ctx context.Context, p *rig.Run) {
			proveDirect(ctx, p, rig.Alpha, rig.MaxPull)
		}),
	)
}

// proveOnlyBeta proves that on every worker alpha has no hosts.toml, beta's hosts.toml is
// unchanged, and the unit has only beta's argument.
func proveOnlyBeta(ctx context.Context, p *rig.Run, before map[string]string) {
	p.Helper()
	for _, worker := range p.Workers() {
		if content := p.Hosts(ctx, worker, rig.Alpha); !rig.IsAbsent(content) {
			p.Errorf("alpha's hosts.toml is on %s:\n%s", worker.Name(), content)
		}
		if now := p.Fingerprint(ctx, worker, rig.HostsPath(rig.Beta)); now != before[worker.Name()] {
			p.Errorf("beta's hosts.toml on %s has changed: was %s, is %s", worker.Name(), before[worker.Name()], now)
		}
		for where, arguments := range map[string]string{
			nodeconfig.UnitPath: p.File(ctx, worker, nodeconfig.UnitPath),
			"systemd":           p.Systemd(ctx, worker, "ExecStart"),
		} {
			if strings.Contains(arguments, rig.Alpha) || !strings.Contains(arguments, rig.Beta+",") {
				p.Errorf("arguments of the unit on %s, according to %s, want only beta's: %s", worker.Name(), where, arguments)
			}
		}
	}
	if p.Failed() {
		p.FailNow()
	}
}
