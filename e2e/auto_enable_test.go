//go:build e2e

package e2e

import (
	"context"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/e2e/rig"
)

// autoEnable proves that the extension can be enabled for all Shoots of a garden: without a
// configuration it has no caches and disturbs nothing, and a Shoot can opt out.
func autoEnable() rig.Scenario {
	enable := func(ctx context.Context, p *rig.Run, types []gardencorev1beta1.ClusterType) {
		p.Helper()
		registration := &gardencorev1beta1.ControllerRegistration{ObjectMeta: metav1.ObjectMeta{Name: v1alpha3.ExtensionType}}
		p.Check(garden(p).Get(ctx, client.ObjectKeyFromObject(registration), registration))
		patch := client.MergeFrom(registration.DeepCopy())
		registration.Spec.Resources[0].AutoEnable = types
		p.Check(garden(p).Patch(ctx, registration, patch))
	}
	return rig.New("auto-enable",
		rig.Prove("the Shoot does not mention the extension, and gets an Extension without caches", func(ctx context.Context, p *rig.Run) {
			p.Reconcile(ctx)
			p.Afterwards(ctx, func(ctx context.Context) error { enable(ctx, p, nil); return nil })
			enable(ctx, p, []gardencorev1beta1.ClusterType{gardencorev1beta1.ClusterTypeShoot})
			annotate(ctx, p, v1beta1constants.GardenerOperationReconcile)
			awaitHealthy(ctx, p)
			extension, err := rig.GetExtension(ctx, p)
			p.Check(err)
			if state := rig.StateOf(extension); state != gardencorev1beta1.LastOperationStateSucceeded || extension.Spec.ProviderConfig != nil {
				p.Fatalf("the Extension is %s, with configuration %s", state, extension.Spec.ProviderConfig)
			}
			p.NothingDeployed(ctx)
			p.Evidence("Extension Succeeded without a configuration, no caches")
		}),
		rig.Prove("a Shoot can opt out", func(ctx context.Context, p *rig.Run) {
			changeShoot(ctx, p, func(shoot *gardencorev1beta1.Shoot) {
				shoot.Spec.Extensions = []gardencorev1beta1.Extension{{Type: v1alpha3.ExtensionType, Disabled: ptr.To(true)}}
			})
			awaitHealthy(ctx, p)
			if _, err := rig.GetExtension(ctx, p); !apierrors.IsNotFound(err) {
				p.Fatalf("the Extension exists (%v)", err)
			}
			p.Evidence("disabled: no Extension")
		}),
	)
}
