//go:build e2e

package e2e

import (
	"context"
	"strings"

	"sigs.k8s.io/e2e-framework/pkg/features"

	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

// removeUpstream proves that removing one upstream cleans the nodes first, and touches nothing else.
func removeUpstream() features.Feature {
	var (
		others   foreign
		order    *cleaning
		betaFile = map[string]string{}
		betaImg  pushed
	)
	return scenario("remove-upstream",
		step{"alpha and beta are cached, and nodes have foreign files", func(ctx context.Context, p *proof) {
			cached(alpha, beta)(ctx, p)
			others = putForeignFiles(ctx, p)
			betaImg = p.Push(ctx, beta)
			p.Pull(ctx, p.Worker(0), betaImg)
			p.FetchedOnce(ctx, betaImg, accesslog.AskerCache)
			for _, worker := range p.Workers() {
				betaFile[worker.Name()] = p.Fingerprint(ctx, worker, hostsPath(beta))
			}
		}},
		step{"alpha is removed while its images are pulled", func(ctx context.Context, p *proof) {
			order = watchCleaning(ctx, p, alpha)
			pulls := pullContinuously(ctx, p, alpha)
			p.Reconcile(ctx, beta)
			pulls.end(p, alpha, maxPull)
		}},
		step{"the cleaner ran on every worker before alpha's Service vanished", func(ctx context.Context, p *proof) {
			order.proveOrder(ctx, p)
		}},
		step{"alpha is gone from every worker, beta is as it was", func(ctx context.Context, p *proof) {
			p.AwaitMirrors(ctx, beta)
			for _, worker := range p.Workers() {
				if now := p.Fingerprint(ctx, worker, hostsPath(beta)); now != betaFile[worker.Name()] {
					p.Errorf("beta's hosts.toml on %s was touched: was %s, is %s", worker.Name(), betaFile[worker.Name()], now)
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
			p.Evidence("alpha's hosts.toml and arguments gone, beta's hosts.toml untouched")
		}},
		step{"beta's image is still a hit", func(ctx context.Context, p *proof) {
			p.Pull(ctx, p.Worker(1), betaImg)
			p.FetchedOnce(ctx, betaImg, accesslog.AskerCache)
			p.Evidence("beta still a hit")
		}},
		step{"no cleaner and no volume of alpha is left", func(ctx context.Context, p *proof) {
			p.NoCleanerLeft(ctx)
			order.proveClaimsGone(ctx, p)
		}},
		step{"foreign files are untouched", func(ctx context.Context, p *proof) { others.proveUntouched(ctx, p) }},
		step{"pulls of alpha go direct, in time", func(ctx context.Context, p *proof) {
			p.ProveDirect(ctx, alpha, maxPull)
		}},
	)
}
