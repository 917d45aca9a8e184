//go:build e2e

package e2e

import (
	"context"

	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/e2e-framework/pkg/features"
)

// disableExtension proves that a shoot without the extension has nothing of it left, neither in the clusters nor on the
// nodes.
func disableExtension() features.Feature {
	var (
		others foreign
		order  *cleaning
	)
	return scenario("disable-extension",
		step{"alpha and beta are cached, and nodes have foreign files", func(ctx context.Context, p *proof) {
			cached(alpha, beta)(ctx, p)
			others = putForeignFiles(ctx, p)
		}},
		step{"the extension is disabled while images of alpha are pulled", func(ctx context.Context, p *proof) {
			order = watchCleaning(ctx, p, alpha, beta)
			pulls := pullContinuously(ctx, p, alpha)
			p.Reconcile(ctx)
			pulls.end(p, alpha, maxPull)
		}},
		step{"the cleaner ran on every worker before a Service vanished", func(ctx context.Context, p *proof) {
			order.proveOrder(ctx, p)
		}},
		step{"hosts.toml, script and unit are gone from every worker", func(ctx context.Context, p *proof) {
			p.AwaitMirrors(ctx)
			for _, worker := range p.Workers() {
				for _, path := range []string{scriptPath, unitPath} {
					if content := p.File(ctx, worker, path); !isAbsent(content) {
						p.Errorf("%s is still on %s:\n%s", path, worker.Name(), content)
					}
				}
				if state := p.Systemd(ctx, worker, "LoadState"); state != "not-found" {
					p.Errorf("systemd of %s still knows %s: %s", worker.Name(), unitName, state)
				}
			}
			p.Evidence("hosts.toml, script and unit gone from %d workers", len(p.Workers()))
		}},
		step{"nothing of the extension is left in the clusters", func(ctx context.Context, p *proof) {
			p.NoCleanerLeft(ctx)
			order.proveClaimsGone(ctx, p)
			meta := metav1.ObjectMeta{Namespace: shootNamespace, Name: extensionName}
			p.Gone(ctx, suite.seed, &extensionsv1alpha1.Extension{ObjectMeta: meta})
			meta.Name = cachesManagedResource
			p.Gone(ctx, suite.seed, &resourcesv1alpha1.ManagedResource{ObjectMeta: meta})
			p.Evidence("Extension gone")
		}},
		step{"foreign files are untouched", func(ctx context.Context, p *proof) { others.proveUntouched(ctx, p) }},
		step{"pulls go direct, in time", func(ctx context.Context, p *proof) {
			p.ProveDirect(ctx, alpha, maxPull)
			p.ProveDirect(ctx, beta, maxPull)
		}},
	)
}
