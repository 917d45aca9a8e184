//go:build e2e

package e2e

import (
	"context"
	"strings"

	"github.com/gardener-extensions/registry-cache/kind/cluster"
)

// latecomer is a worker that is given the configuration of before once more, after it was cleaned: as one that joins, with
// the OperatingSystemConfig of before, when no cleaner is there any more.
type latecomer struct {
	worker *cluster.Node
	host   string
	// unit and hosts are what was there before.
	unit, hosts string
}

// newLatecomer remembers the present configuration.
func newLatecomer(ctx context.Context, p *scenarioRun, worker *cluster.Node, host string) *latecomer {
	p.Helper()
	l := &latecomer{worker: worker, host: host, unit: p.File(ctx, worker, unitPath), hosts: p.Hosts(ctx, worker, host)}
	if !strings.Contains(l.unit, host+",") || isAbsent(l.hosts) {
		p.Fatalf("%s is not configured for %s", worker.Name(), host)
	}
	return l
}

// configure lays down what was remembered and proves that the script, which runs again, leaves the file as it is.
func (l *latecomer) configure(ctx context.Context, p *scenarioRun) {
	p.Helper()
	p.Check(l.worker.WriteFile(ctx, unitPath, 0o600, []byte(l.unit)))
	p.Check(l.worker.WriteFile(ctx, hostsPath(l.host), 0o644, []byte(l.hosts)))
	_, err := l.worker.Script(ctx, "systemctl daemon-reload && systemctl restart "+unitName)
	p.Check(err)
	if state := p.Systemd(ctx, l.worker, "ActiveState"); state != "active" {
		p.Errorf("%s on %s is %s", unitName, l.worker.Name(), state)
	}
	if hosts := p.Hosts(ctx, l.worker, l.host); hosts != l.hosts {
		p.Fatalf("hosts.toml of %s on %s is\n%s\nwant the one of before", l.host, l.worker.Name(), hosts)
	}
}
