//go:build e2e

package e2e

import (
	"context"
	"strings"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/e2e/rig"
	"github.com/gardener-extensions/registry-cache/kind/operate"
	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

const beginCertificate = "-----BEGIN CERTIFICATE-----"

// caRotation proves that the authority of the caches is rotated in two phases without a failed
// pull, and that nodes pull by the cache in each of them.
func caRotation() rig.Scenario {
	var pulls *rig.Stream
	caches := []v1alpha3.RegistryCache{tlsCache(rig.Alpha), operate.CacheOf(rig.Beta)}
	bundles := map[gardencorev1beta1.CredentialsRotationPhase]string{}
	rotate := func(phase gardencorev1beta1.CredentialsRotationPhase, authorities int) func(context.Context, *rig.Run) {
		return func(ctx context.Context, p *rig.Run) {
			start := time.Now()
			shoot, err := operate.ShootWithConfig(v1alpha3.RegistryConfig{Caches: caches})
			p.Check(err)
			p.Check(p.Session.Testbed.Gardenlet.RotateCA(ctx, shoot, phase))
			bundles[phase] = awaitAuthorities(ctx, p, authorities)
			img := p.Push(ctx, rig.Alpha)
			for _, worker := range p.Workers() {
				p.TimedPull(ctx, worker, img)
			}
			p.FetchedOnce(ctx, img, accesslog.AskerCache)
			p.Evidence("%s: %d authorities on every worker after %s, a hit on each", phase, authorities, rig.Seconds(time.Since(start)))
		}
	}
	return rig.New("ca-rotation",
		rig.Prove("alpha is cached by HTTPS", func(ctx context.Context, p *rig.Run) {
			rig.Configured(caches...)(ctx, p)
			bundles[""] = awaitAuthorities(ctx, p, 1)
			pulls = rig.PullContinuously(ctx, p, rig.Alpha)
		}),

		rig.Prove("nodes trust the old and the new authority", rotate(gardencorev1beta1.RotationPreparing, 2)),
		rig.Prove("the cache shows a certificate of the new one, which alone is trusted", rotate(gardencorev1beta1.RotationCompleting, 1)),
		rig.Prove("it is another authority than before, and was announced", func(_ context.Context, p *rig.Run) {
			before, prepared, after := bundles[""], bundles[gardencorev1beta1.RotationPreparing], bundles[gardencorev1beta1.RotationCompleting]
			if before == after || !strings.Contains(prepared, strings.TrimSpace(before)) || !strings.Contains(prepared, strings.TrimSpace(after)) {
				p.Fatalf("authorities before:\n%s\nmeanwhile:\n%s\nafter:\n%s", before, prepared, after)
			}
		}),

		rig.Prove("no pull failed or took long", func(_ context.Context, p *rig.Run) {
			pulls.End(p, rig.Alpha, rig.MaxPull)
		}),
	)
}

// awaitAuthorities waits until hosts.toml of alpha on every worker has the authorities of the
// Extension's status, and proves how many those are. It returns them.
func awaitAuthorities(ctx context.Context, p *rig.Run, count int) string {
	p.Helper()
	extension := p.Extension(ctx)
	if extension.Status.ProviderStatus == nil {
		p.Fatalf("the Extension has no providerStatus")
	}
	status, err := v1alpha3.DecodeStatus(extension.Status.ProviderStatus.Raw)
	p.Check(err)
	if status.CABundle == nil || strings.Count(*status.CABundle, beginCertificate) != count {
		p.Fatalf("the status does not have %d authorities: %s", count, extension.Status.ProviderStatus.Raw)
	}
	p.Await(ctx, "hosts.toml on every worker has the authorities of the status", rig.AppliedTimeout, func(ctx context.Context) (bool, string, error) {
		for _, worker := range p.Workers() {
			hosts, err := rig.ReadFile(ctx, worker, rig.HostsPath(rig.Alpha))
			if err != nil {
				return false, "", err
			}
			if !strings.Contains(hosts, strings.TrimSpace(*status.CABundle)) || strings.Count(hosts, beginCertificate) != count {
				return false, worker.Name() + ": " + hosts, nil
			}
		}
		return true, "", nil
	})
	return *status.CABundle
}
