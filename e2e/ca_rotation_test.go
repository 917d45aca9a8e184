//go:build e2e

package e2e

import (
	"context"
	"strings"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"k8s.io/utils/ptr"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/cachetest"
	"github.com/gardener-extensions/registry-cache/e2e/rig"
)

const beginCertificate = "-----BEGIN CERTIFICATE-----"

// caRotation proves that the CA of the caches is rotated in two phases without a failed pull, and
// that nodes pull through the cache in each phase.
func caRotation() rig.Scenario {
	var pulls *stream
	caches := []v1alpha3.RegistryCache{tlsCache(rig.Alpha), cachetest.Cache(rig.Beta)}
	bundles := map[gardencorev1beta1.CredentialsRotationPhase]string{}
	rotate := func(phase gardencorev1beta1.CredentialsRotationPhase, cas int) func(context.Context, *rig.Run) {
		return func(ctx context.Context, p *rig.Run) {
			shoot, err := cachetest.ShootWith(v1alpha3.RegistryConfig{Caches: caches})
			p.Check(err)
			p.Check(p.Session.Testbed.Gardenlet.RotateCA(ctx, shoot, phase))
			start := time.Now()
			bundles[phase] = awaitCAs(ctx, p, cas)
			evidence := cachedWithin(ctx, p, rig.Alpha, start, restartedWithin)
			p.Evidence("%s: %d CAs on every worker, a new image after %s: %s", phase, cas, rig.Seconds(time.Since(start)), evidence)
		}
	}
	return rig.New("ca-rotation",
		rig.Prove("alpha is cached over HTTPS", func(ctx context.Context, p *rig.Run) {
			rig.Configured(caches...)(ctx, p)
			bundles[""] = awaitCAs(ctx, p, 1)
			pulls = pullContinuously(ctx, p, rig.Alpha)
		}),

		rig.Prove("nodes trust the old and the new CA", rotate(gardencorev1beta1.RotationPreparing, 2)),
		rig.Prove("the cache uses a certificate of the new CA, and nodes trust only that", rotate(gardencorev1beta1.RotationCompleting, 1)),
		rig.Prove("the new CA differs from the old one, and nodes trusted it before the switch", func(_ context.Context, p *rig.Run) {
			before, prepared, after := bundles[""], bundles[gardencorev1beta1.RotationPreparing], bundles[gardencorev1beta1.RotationCompleting]
			if before == after || !strings.Contains(prepared, strings.TrimSpace(before)) || !strings.Contains(prepared, strings.TrimSpace(after)) {
				p.Fatalf("CAs before:\n%s\nin between:\n%s\nafter:\n%s", before, prepared, after)
			}
		}),

		rig.Prove("no pull failed or was slow", func(_ context.Context, p *rig.Run) {
			pulls.end(p, rig.Alpha, rig.MaxPull)
		}),
	)
}

// awaitCAs waits until alpha's hosts.toml on every worker contains the CA bundle from the
// Extension's status, and returns this bundle. The bundle must contain the given number of CAs.
func awaitCAs(ctx context.Context, p *rig.Run, count int) string {
	p.Helper()
	status := p.Status(ctx)
	if status.CABundle == nil || strings.Count(*status.CABundle, beginCertificate) != count {
		p.Fatalf("the status does not contain %d CAs: %s", count, ptr.Deref(status.CABundle, ""))
	}
	p.Await(ctx, "hosts.toml on every worker contains the CA bundle of the status", rig.AppliedTimeout, func(ctx context.Context) (bool, string, error) {
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
