//go:build e2e

package e2e

import (
	"context"
	"strings"

	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/e2e/rig"
	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

// disableExtension proves that disabling the extension removes all its objects from the clusters
// and all its files from the nodes.
func disableExtension() rig.Scenario {
	var (
		others  unmanagedFiles
		removed *removal
		late    *latecomer
	)
	return rig.New("disable-extension",
		rig.Prove("alpha and beta are cached, and nodes have unmanaged files", func(ctx context.Context, p *rig.Run) {
			rig.Cached(rig.Alpha, rig.Beta)(ctx, p)
			others = putUnmanagedFiles(ctx, p)
			late = newLatecomer(ctx, p, p.Worker(1), rig.Beta)
		}),

		rig.Prove("the extension is disabled while images of alpha are pulled", func(ctx context.Context, p *rig.Run) {
			removed = remove(ctx, p, []string{rig.Alpha, rig.Beta}, nil)
		}),

		rig.Prove("the cleaner alone removed hosts.toml from every worker, and left the unit healthy", proveCleanWorkers),
		rig.Prove("the cleaner ran on every worker before a Service was deleted", func(ctx context.Context, p *rig.Run) {
			removed.order.proveOrder(ctx, p)
		}),

		rig.Prove("a worker gets the old configuration, as does one that joins after the cleaner is gone", func(ctx context.Context, p *rig.Run) {
			late.configure(ctx, p)
		}),

		rig.Prove("gardener-node-agent removes the rest, and the stopping unit removes that worker's hosts.toml", func(ctx context.Context, p *rig.Run) {
			removed.finish(ctx, p)
			awaitNothingOnWorkers(ctx, p)
			p.Evidence("hosts.toml, script and unit gone from %d workers", len(p.Workers()))
		}),

		rig.Prove("nothing of the extension is left in the clusters", func(ctx context.Context, p *rig.Run) {
			p.NoCleanerLeft(ctx)
			removed.order.proveClaimsGone(ctx, p)
			meta := metav1.ObjectMeta{Namespace: rig.ShootNamespace, Name: v1alpha3.ExtensionType}
			p.Gone(ctx, p.Session.Seed, &extensionsv1alpha1.Extension{ObjectMeta: meta})
			for _, meta.Name = range []string{v1alpha3.ManagedResourceCaches, v1alpha3.ManagedResourceServices} {
				p.Gone(ctx, p.Session.Seed, &resourcesv1alpha1.ManagedResource{ObjectMeta: meta})
			}
			p.Evidence("Extension gone")
		}),

		rig.Prove("unmanaged files are unchanged", func(ctx context.Context, p *rig.Run) { others.proveUntouched(ctx, p) }),
		rig.Prove("pulls go directly to the upstream, in time", func(ctx context.Context, p *rig.Run) {
			proveDirect(ctx, p, rig.Alpha, rig.MaxPull)
			proveDirect(ctx, p, rig.Beta, rig.MaxPull)
		}),
	)
}

// proveCleanWorkers proves that the cleaner has removed hosts.toml from every worker, and that the
// unit is still active. gardener-node-agent reports an inactive unit as unhealthy until the unit is
// removed from the OperatingSystemConfig.
func proveCleanWorkers(ctx context.Context, p *rig.Run) {
	p.Helper()
	for _, worker := range p.Workers() {
		provePathsAbsent(ctx, p, worker, rig.HostsPath(rig.Alpha), rig.HostsPath(rig.Beta))
		for where, arguments := range map[string]string{
			nodeconfig.UnitPath: p.File(ctx, worker, nodeconfig.UnitPath),
			"systemd":           p.Systemd(ctx, worker, "ExecStart"),
		} {
			if !strings.Contains(arguments, nodeconfig.ScriptPath) || strings.Contains(arguments, rig.Alpha) || strings.Contains(arguments, rig.Beta) {
				p.Errorf("the unit on %s, according to %s, has arguments, want none: %s", worker.Name(), where, arguments)
			}
		}
		if state := p.Systemd(ctx, worker, "ActiveState"); state != "active" {
			p.Errorf("%s on %s is %s, want it active", nodeconfig.UnitName, worker.Name(), state)
		}
	}
	if p.Failed() {
		p.FailNow()
	}
}

// leftScript prints which of the files $2, $3 and so on exist, and the unit $1 if systemd knows it.
const leftScript = `unit=$1; shift
for path do [ ! -e "$path" ] || echo "$path"; done
state=$(systemctl show --property LoadState --value -- "$unit")
[ "$state" = not-found ] || echo "$unit ($state)"`

// awaitNothingOnWorkers waits until nothing of the extension is left on any worker. gardenlet's
// flow can end shortly before gardener-node-agent has removed everything.
func awaitNothingOnWorkers(ctx context.Context, p *rig.Run) {
	p.Helper()
	arguments := []string{nodeconfig.UnitName, rig.HostsPath(rig.Alpha), rig.HostsPath(rig.Beta), nodeconfig.ScriptPath, nodeconfig.UnitPath}
	p.Check(rig.AwaitEvery(ctx, rig.NodeInterval, "nothing of the extension is left on any worker", rig.AppliedTimeout,
		func(ctx context.Context) (bool, string, error) {
			for _, worker := range p.Workers() {
				if left, err := worker.Script(ctx, leftScript, arguments...); left != "" || err != nil {
					return false, worker.Name() + " has " + left, err
				}
			}
			return true, "", nil
		}))
}

func provePathsAbsent(ctx context.Context, p *rig.Run, worker *cluster.Node, paths ...string) {
	p.Helper()
	for _, path := range paths {
		if content := p.File(ctx, worker, path); !rig.IsAbsent(content) {
			p.Errorf("%s is on %s:\n%s", path, worker.Name(), content)
		}
	}
}

// latecomer is a worker that gets its previous configuration again after the cleaner has run. It
// imitates a node that joins with a stale OperatingSystemConfig when the cleaner is already gone.
type latecomer struct {
	worker *cluster.Node
	host   string
	// unit and hosts are the previous contents of the unit file and of hosts.toml.
	unit, hosts string
}

// newLatecomer returns a latecomer that remembers the worker's current configuration.
func newLatecomer(ctx context.Context, p *rig.Run, worker *cluster.Node, host string) *latecomer {
	p.Helper()
	l := &latecomer{worker: worker, host: host, unit: p.File(ctx, worker, nodeconfig.UnitPath), hosts: p.Hosts(ctx, worker, host)}
	if !strings.Contains(l.unit, host+",") || rig.IsAbsent(l.hosts) {
		p.Fatalf("%s is not configured for %s", worker.Name(), host)
	}
	return l
}

// configure stops the unit, because it would remove hosts.toml. Then it writes the saved files,
// starts the unit, and proves that hosts.toml does not change.
func (l *latecomer) configure(ctx context.Context, p *rig.Run) {
	p.Helper()
	_, err := l.worker.Script(ctx, "systemctl stop "+nodeconfig.UnitName)
	p.Check(err)
	p.Check(l.worker.WriteFile(ctx, nodeconfig.UnitPath, 0o600, []byte(l.unit)))
	p.Check(l.worker.WriteFile(ctx, rig.HostsPath(l.host), 0o644, []byte(l.hosts)))
	_, err = l.worker.Script(ctx, "systemctl daemon-reload && systemctl start "+nodeconfig.UnitName)
	p.Check(err)
	if state := p.Systemd(ctx, l.worker, "ActiveState"); state != "active" {
		p.Errorf("%s on %s is %s", nodeconfig.UnitName, l.worker.Name(), state)
	}
	if hosts := p.Hosts(ctx, l.worker, l.host); hosts != l.hosts {
		p.Fatalf("hosts.toml of %s on %s is\n%s\nwant the previous one", l.host, l.worker.Name(), hosts)
	}
}
