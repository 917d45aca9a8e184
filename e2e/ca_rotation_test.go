//go:build e2e

package e2e

import (
	"context"
	"strings"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/kind/operate"
	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

const beginCertificate = "-----BEGIN CERTIFICATE-----"

// caRotation proves that the authority of the caches is rotated in two phases without a failed pull, and that nodes pull
// by the cache in each of them.
func caRotation() scenario {
	var pulls *stream
	caches := []v1alpha3.RegistryCache{tlsCache(alpha), operate.CacheOf(beta)}
	bundles := map[gardencorev1beta1.CredentialsRotationPhase]string{}
	rotate := func(phase gardencorev1beta1.CredentialsRotationPhase, authorities int) func(context.Context, *scenarioRun) {
		return func(ctx context.Context, p *scenarioRun) {
			start := time.Now()
			shoot, err := operate.ShootWithConfig(v1alpha3.RegistryConfig{Caches: caches})
			p.Check(err)
			p.Check(p.suite.testbed.Gardenlet.RotateCA(ctx, shoot, phase))
			bundles[phase] = p.AwaitAuthorities(ctx, authorities)
			img := p.Push(ctx, alpha)
			for _, worker := range p.Workers() {
				p.TimedPull(ctx, worker, img)
			}
			p.FetchedOnce(ctx, img, accesslog.AskerCache)
			p.Evidence("%s: %d authorities on every worker after %s, a hit on each", phase, authorities, seconds(time.Since(start)))
		}
	}
	return newScenario("ca-rotation",
		step{"alpha is cached by HTTPS", func(ctx context.Context, p *scenarioRun) {
			configured(caches...)(ctx, p)
			bundles[""] = p.AwaitAuthorities(ctx, 1)
			pulls = pullContinuously(ctx, p, alpha)
		}},
		step{"nodes trust the old and the new authority", rotate(gardencorev1beta1.RotationPreparing, 2)},
		step{"the cache shows a certificate of the new one, which alone is trusted", rotate(gardencorev1beta1.RotationCompleting, 1)},
		step{"it is another authority than before, and was announced", func(_ context.Context, p *scenarioRun) {
			before, prepared, after := bundles[""], bundles[gardencorev1beta1.RotationPreparing], bundles[gardencorev1beta1.RotationCompleting]
			if before == after || !strings.Contains(prepared, strings.TrimSpace(before)) || !strings.Contains(prepared, strings.TrimSpace(after)) {
				p.Fatalf("authorities before:\n%s\nmeanwhile:\n%s\nafter:\n%s", before, prepared, after)
			}
		}},
		// While the one pod of the cache is replaced for its new certificate, nodes pull from the upstream.
		step{"no pull failed or took long", func(_ context.Context, p *scenarioRun) {
			pulls.end(p, alpha, maxPull)
		}},
	)
}

// AwaitAuthorities waits until hosts.toml of alpha on every worker has the authorities of the Extension's status, and
// proves how many those are. It returns them.
func (p *scenarioRun) AwaitAuthorities(ctx context.Context, count int) string {
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
	p.Await(ctx, "hosts.toml on every worker has the authorities of the status", appliedTimeout, func(ctx context.Context) (bool, string, error) {
		for _, worker := range p.Workers() {
			hosts, err := readFile(ctx, worker, hostsPath(alpha))
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
