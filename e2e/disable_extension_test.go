//go:build e2e

package e2e

import (
	"context"
	"strings"

	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gardener-extensions/registry-cache/kind/cluster"
)

// disableExtension proves that a shoot without the extension has nothing of it left, neither in the clusters nor on the
// nodes.
func disableExtension() scenario {
	var (
		others  foreign
		removed *removal
		late    *latecomer
	)
	return newScenario("disable-extension",
		step{"alpha and beta are cached, and nodes have foreign files", func(ctx context.Context, p *scenarioRun) {
			cached(alpha, beta)(ctx, p)
			others = putForeignFiles(ctx, p)
			late = newLatecomer(ctx, p, p.Worker(1), beta)
		}},
		step{"the extension is disabled while images of alpha are pulled", func(ctx context.Context, p *scenarioRun) {
			removed = remove(ctx, p, []string{alpha, beta}, nil)
		}},
		step{"the cleaner alone took hosts.toml off every worker, and left the unit healthy", proveCleanWorkers},
		step{"it ran on every worker before a Service vanished", func(ctx context.Context, p *scenarioRun) {
			removed.order.proveOrder(ctx, p)
		}},
		step{"a worker has the configuration of before, like one that joins after the cleaner went", func(ctx context.Context, p *scenarioRun) {
			late.configure(ctx, p)
		}},
		step{"gardener-node-agent takes the rest, and with the unit that worker's hosts.toml", func(ctx context.Context, p *scenarioRun) {
			removed.finish(ctx, p)
			proveNothingOnWorkers(ctx, p)
			p.Evidence("hosts.toml, script and unit gone from %d workers", len(p.Workers()))
		}},
		step{"nothing of the extension is left in the clusters", func(ctx context.Context, p *scenarioRun) {
			p.NoCleanerLeft(ctx)
			removed.order.proveClaimsGone(ctx, p)
			meta := metav1.ObjectMeta{Namespace: shootNamespace, Name: extensionName}
			p.Gone(ctx, p.suite.seed, &extensionsv1alpha1.Extension{ObjectMeta: meta})
			meta.Name = cachesManagedResource
			p.Gone(ctx, p.suite.seed, &resourcesv1alpha1.ManagedResource{ObjectMeta: meta})
			p.Evidence("Extension gone")
		}},
		step{"foreign files are untouched", func(ctx context.Context, p *scenarioRun) { others.proveUntouched(ctx, p) }},
		step{"pulls go direct, in time", func(ctx context.Context, p *scenarioRun) {
			p.ProveDirect(ctx, alpha, maxPull)
			p.ProveDirect(ctx, beta, maxPull)
		}},
	)
}

// proveCleanWorkers proves that the cleaner has left nothing for a pull to use on any worker, and the unit as
// gardener-node-agent wants it while it has not heard of the removal: its check reports one that is not active as unhealthy.
func proveCleanWorkers(ctx context.Context, p *scenarioRun) {
	p.Helper()
	for _, worker := range p.Workers() {
		provePathsAbsent(ctx, p, worker, hostsPath(alpha), hostsPath(beta))
		for where, arguments := range map[string]string{
			unitPath:  p.File(ctx, worker, unitPath),
			"systemd": p.Systemd(ctx, worker, "ExecStart"),
		} {
			if !strings.Contains(arguments, scriptPath) || strings.Contains(arguments, alpha) || strings.Contains(arguments, beta) {
				p.Errorf("the unit on %s by %s, want it without arguments: %s", worker.Name(), where, arguments)
			}
		}
		if state := p.Systemd(ctx, worker, "ActiveState"); state != "active" {
			p.Errorf("%s on %s is %s, want it active", unitName, worker.Name(), state)
		}
	}
	if p.Failed() {
		p.FailNow()
	}
}

// proveNothingOnWorkers proves that the extension has left nothing on any worker.
func proveNothingOnWorkers(ctx context.Context, p *scenarioRun) {
	p.Helper()
	for _, worker := range p.Workers() {
		provePathsAbsent(ctx, p, worker, hostsPath(alpha), hostsPath(beta), scriptPath, unitPath)
		if state := p.Systemd(ctx, worker, "LoadState"); state != "not-found" {
			p.Errorf("systemd of %s knows %s: %s", worker.Name(), unitName, state)
		}
	}
	if p.Failed() {
		p.FailNow()
	}
}

func provePathsAbsent(ctx context.Context, p *scenarioRun, worker *cluster.Node, paths ...string) {
	p.Helper()
	for _, path := range paths {
		if content := p.File(ctx, worker, path); !isAbsent(content) {
			p.Errorf("%s is on %s:\n%s", path, worker.Name(), content)
		}
	}
}
