//go:build e2e

package nodeless

import (
	"context"
	"time"

	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/e2e/rig"
)

// maxForceDeletion bounds a force-deletion. It is far shorter than the timeouts of a deletion that
// waits for the shoot.
const maxForceDeletion = 90 * time.Second

// forceDelete proves that the extension does not block the force-deletion of a shoot with a broken
// control plane: gardener-resource-manager does not run, and the kubeconfig is invalid.
func forceDelete() rig.Scenario {
	return rig.New("force-delete",
		rig.Prove("alpha and beta are cached", cached(rig.Alpha, rig.Beta)),
		rig.Prove("the control plane breaks", func(ctx context.Context, p *rig.Run) {
			manager := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: p.Session.Namespace(), Name: "gardener-resource-manager"}}
			p.Check(p.Session.Seed.Patch(ctx, manager, client.RawPatch(client.Merge.Type(), []byte(`{"spec":{"replicas":0}}`))))
			access := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: p.Session.Namespace(), Name: "gardener"}}
			p.Check(p.Session.Seed.Patch(ctx, access, client.RawPatch(client.Merge.Type(), []byte(`{"data":{"kubeconfig":"bm9uc2Vuc2U="}}`))))
		}),

		rig.Prove("gardenlet force-deletes the shoot", func(ctx context.Context, p *rig.Run) {
			shoot, err := p.Session.ShootWith(nil, rig.PlainCaches(rig.Alpha, rig.Beta)...)
			p.Check(err)
			start := time.Now()
			p.Check(p.Session.Testbed.Gardenlet.ForceDelete(ctx, shoot))
			if took := time.Since(start); took > maxForceDeletion {
				p.Errorf("the deletion took %s, want at most %s", rig.Seconds(took), maxForceDeletion)
			}
			p.Gone(ctx, p.Session.Seed, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.Session.Namespace()}})
			p.Gone(ctx, p.Session.Seed, &extensionsv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: p.Session.Namespace()}})
			p.Evidence("deleted after %s, although nothing answered", rig.Seconds(time.Since(start)))
		}),

		rig.Prove("a shoot that is created again has its caches", cached(rig.Alpha, rig.Beta)),
	)
}
