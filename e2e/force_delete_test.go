//go:build e2e

package e2e

import (
	"context"
	"time"

	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/kind/operate"
)

// maxForceDeletion is far below what waiting for a shoot that does not answer would take.
const maxForceDeletion = 90 * time.Second

// forceDelete proves that the extension keeps no shoot from being force-deleted whose control plane is broken: nobody applies
// ManagedResources any more, and the API server does not answer.
func forceDelete() scenario {
	return newScenario("force-delete",
		step{"alpha and beta are cached", cached(alpha, beta)},
		step{"the control plane breaks", func(ctx context.Context, p *scenarioRun) {
			manager := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: shootNamespace, Name: "gardener-resource-manager"}}
			p.Check(p.suite.seed.Patch(ctx, manager, client.RawPatch(client.Merge.Type(), []byte(`{"spec":{"replicas":0}}`))))
			access := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: shootNamespace, Name: "gardener"}}
			p.Check(p.suite.seed.Patch(ctx, access, client.RawPatch(client.Merge.Type(), []byte(`{"data":{"kubeconfig":"bm9uc2Vuc2U="}}`))))
		}},
		step{"gardenlet force-deletes the shoot", func(ctx context.Context, p *scenarioRun) {
			shoot, err := operate.ShootWithCaches(alpha, beta)
			p.Check(err)
			start := time.Now()
			p.Check(p.suite.testbed.Gardenlet.ForceDelete(ctx, shoot))
			if took := time.Since(start); took > maxForceDeletion {
				p.Errorf("that took %s, want at most %s", seconds(took), maxForceDeletion)
			}
			p.Gone(ctx, p.suite.seed, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: shootNamespace}})
			p.Gone(ctx, p.suite.seed, &extensionsv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: shootNamespace}})
			p.Evidence("gone after %s, although nothing answered", seconds(time.Since(start)))
		}},
		step{"a shoot that is created anew has its caches", cached(alpha, beta)},
	)
}
