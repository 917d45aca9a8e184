//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"time"

	"github.com/gardener-extensions/registry-cache/cachetest/pull"
	"github.com/gardener-extensions/registry-cache/e2e/rig"
	"github.com/gardener-extensions/registry-cache/kind/cluster"
)

// useTransferService makes containerd, whose configuration is $1, pull with its transfer service,
// and look for hosts.toml in the folders $2. It fails if containerd logs that it cannot use that
// service (internal/cri/config, CheckLocalImagePullConfigs).
const useTransferService = `
[[ -e $1.original ]] || cp -- "$1" "$1.original"
sed -E "/use_local_image_pull/d; s|(discard_unpacked_layers = ).*|\1false|; s|(config_path = ).*|\1\"$2\"|" "$1.original" >"$1"
systemctl restart containerd.service
journalctl --sync
invocation=$(systemctl show --property InvocationID --value containerd.service)
if journalctl --output cat "_SYSTEMD_INVOCATION_ID=$invocation" | grep 'Falling back to local image pull' >&2; then exit 1; fi`

// transferService proves that containerd's transfer service pulls through a cache if config_path is
// one folder. With two folders, containerd's default, it does not, and `testbed pull` reports this.
func transferService() rig.Scenario {
	configure := func(ctx context.Context, p *rig.Run, folders string) {
		p.Helper()
		for _, worker := range p.Workers() {
			_, err := worker.Script(ctx, useTransferService, rig.ContainerdConfig, folders)
			p.Check(err)
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
			p.Afterwards(ctx, func(ctx context.Context) error {
				for _, worker := range p.Workers() {
					if _, err := worker.Script(ctx, rig.UndoScript); err != nil {
						return err
					}
				}
				return nil
			})
			configure(ctx, p, cluster.RegistryConfigDir)
			p.Evidence("one folder: %s", cachedWithin(ctx, p, rig.Alpha, time.Now(), restartedWithin))
		}),

		rig.Prove("with two folders, pulls bypass the cache, and the report of a pull shows this", func(ctx context.Context, p *rig.Run) {
			configure(ctx, p, cluster.RegistryConfigDir+":/etc/docker/certs.d")
			report := requireSource(ctx, p, p.Push(ctx, rig.Alpha), pull.Options{Node: p.Worker(0).Name()}, pull.FromUpstream)
			if report.Total.Fallbacks != 1 {
				p.Fatalf("%d fallbacks are reported, want 1: %s", report.Total.Fallbacks, report.Verdict)
			}
			p.Evidence("two folders: %s", report.Verdict)
		}),
	)
}
