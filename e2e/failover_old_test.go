//go:build e2e

package e2e

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/gardener-extensions/registry-cache/e2e/report"
	"github.com/gardener-extensions/registry-cache/e2e/rig"
	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

const (
	// waitsAtLeast is the least time that a pull with the old configuration takes if packets are
	// dropped: containerd's timeout for one connection.
	waitsAtLeast       = 30 * time.Second
	failoverOldTimeout = 40 * time.Minute
)

// failoverOld measures the same failures as failover, but with the configuration that Gardener
// writes from criConfig.containerd.registries: the mirror is never removed, and there is no
// dial_timeout.
func failoverOld() rig.Scenario {
	return rig.New("failover-old", eachFailure(measureOld)...).Within(failoverOldTimeout)
}

func measureOld(ctx context.Context, p *rig.Run, f cacheFailure) {
	p.Helper()
	awaitCachesServe(ctx, p)
	worker := workerBeside(ctx, p, f.host)
	restore := useOldHosts(ctx, p, worker, f.host)
	f.begin(ctx, p)
	elapse(ctx, p, time.Now().Add(noticedAfter))
	direct := directPull(ctx, p, worker)
	img, start := p.PushLayers(ctx, f.host, failoverLayers, failoverLayerBytes), time.Now()
	took, err := rig.TimedPull(ctx, worker, img)
	if err != nil && time.Since(start) >= report.OldLimit {
		took, err = report.OldLimit, nil
	}
	p.Check(err)
	f.end(ctx, p)
	p.Check(restore(ctx))
	if f.name == packetsDropped && took < waitsAtLeast {
		p.Fatalf("the pull took %s, so it did not wait for the cache, and this measures something else", rig.Seconds(took))
	}
	record(ctx, p, worker, report.Failover{Failure: f.name, Old: took.Seconds()})
	p.Evidence("%s: %s (direct %s)", f.name, rig.Seconds(took), rig.Seconds(direct))
}

// useOldHosts replaces hosts.toml on the worker with one without dial_timeout and without the
// extension's marker, so that the script does not change it. The returned function removes this
// file, and then the script writes its own again.
func useOldHosts(ctx context.Context, p *rig.Run, worker *cluster.Node, host string) (restore func(context.Context) error) {
	p.Helper()
	path := rig.HostsPath(host)
	lines := slices.DeleteFunc(strings.Split(p.Hosts(ctx, worker, host), "\n"), func(line string) bool {
		return line == nodeconfig.Marker || strings.Contains(line, "dial_timeout")
	})
	restore = func(ctx context.Context) error {
		_, err := worker.Script(ctx, `grep -qxF -- "$1" "$2" || rm -f -- "$2"`, nodeconfig.Marker, path)
		return err
	}
	p.Afterwards(ctx, restore)
	p.Check(worker.WriteFile(ctx, path, 0o644, []byte(strings.Join(lines, "\n"))))
	return restore
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
	p.Fatalf("the shoot has no worker other than %s", own)
	return nil
}
