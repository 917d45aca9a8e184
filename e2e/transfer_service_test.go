//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"time"

	"github.com/gardener-extensions/registry-cache/cachetest/pull"
	"github.com/gardener-extensions/registry-cache/e2e/rig"
	"github.com/gardener-extensions/registry-cache/kind/cluster"
	testbedconfig "github.com/gardener-extensions/registry-cache/kind/configuration"
)

// transferService proves that containerd's transfer service pulls through a cache if config_path is
// one folder, and that `testbed pull` reports that it does not if there are two, containerd's
// default.
func transferService() rig.Scenario {
	configure := func(ctx context.Context, p *rig.Run, runtime cluster.Runtime) {
		p.Helper()
		for _, worker := range p.Workers() {
			p.Check(worker.ApplyRuntime(ctx, runtime))
			p.Check(rig.AwaitEvery(ctx, rig.NodeInterval, "containerd answers", rig.AppliedTimeout, func(ctx context.Context) (bool, string, error) {
				_, err := worker.Exec(ctx, "crictl", "images", "--quiet")
				return err == nil, fmt.Sprint(err), nil
			}))
		}
		p.AwaitMirrors(ctx, rig.Alpha, rig.Beta)
	}
	return rig.New("transfer-service",
		rig.Prove("with one folder, pulls by the transfer service come through the cache", func(ctx context.Context, p *rig.Run) {
			rig.Cached(rig.Alpha, rig.Beta)(ctx, p)
			before := p.Session.Testbed.Config.Shoot.Containerd
			p.Afterwards(ctx, func(ctx context.Context) error {
				for _, worker := range p.Workers() {
					if err := worker.ApplyRuntime(ctx, cluster.Runtime{
						TransferService: before.Pull == testbedconfig.PullTransfer, ConfigPath: before.ConfigPath,
					}); err != nil {
						return err
					}
				}
				return nil
			})
			configure(ctx, p, cluster.Runtime{TransferService: true, ConfigPath: cluster.RegistryConfigDir})
			p.Evidence("one folder: %s", cachedWithin(ctx, p, rig.Alpha, time.Now(), restartedWithin))
		}),

		rig.Prove("with two folders they bypass it, and the report of a pull says so", func(ctx context.Context, p *rig.Run) {
			configure(ctx, p, cluster.Runtime{TransferService: true, ConfigPath: cluster.RegistryConfigDir + ":/etc/docker/certs.d"})
			report := requireSource(ctx, p, p.Push(ctx, rig.Alpha), pull.Options{Node: p.Worker(0).Name()}, pull.FromUpstream)
			if report.Total.Fallbacks != 1 {
				p.Fatalf("%d fallbacks are reported, want 1: %s", report.Total.Fallbacks, report.Verdict)
			}
			p.Evidence("two folders: %s", report.Verdict)
		}),
	)
}
