//go:build e2e

package e2e

import (
	"context"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/cachetest"
	"github.com/gardener-extensions/registry-cache/e2e/rig"
)

// registrationHeld proves that deleting the ControllerRegistration of an extension that a Shoot
// uses removes nothing until the Shoot no longer uses it.
func registrationHeld() rig.Scenario {
	return rig.New("registration-held",
		rig.Prove("alpha is cached", rig.Cached(rig.Alpha)),
		rig.Prove("the registration is deleted, and the caches remain", func(ctx context.Context, p *rig.Run) {
			if code, text := kubectl(ctx, p, "", "delete", "controllerregistration", v1alpha3.ExtensionType, "--wait=false"); code != 0 {
				p.Fatalf("delete: exit code %d: %s", code, text)
			}
			annotate(ctx, p, v1beta1constants.GardenerOperationReconcile)
			awaitHealthy(ctx, p)
			registration := &gardencorev1beta1.ControllerRegistration{}
			p.Check(garden(p).Get(ctx, client.ObjectKey{Name: v1alpha3.ExtensionType}, registration))
			img := p.Push(ctx, rig.Alpha)
			p.TimedPull(ctx, p.Worker(0), img)
			p.Evidence("held by %v; still served: %s", registration.Finalizers, p.FetchedOnce(ctx, img, "cache"))
		}),
		rig.Prove("without the extension in the Shoot, the registration goes, and can be created again", func(ctx context.Context, p *rig.Run) {
			p.Reconcile(ctx)
			p.Await(ctx, "the ControllerRegistration is gone", operationTimeout, func(ctx context.Context) (bool, string, error) {
				err := garden(p).Get(ctx, client.ObjectKey{Name: v1alpha3.ExtensionType}, &gardencorev1beta1.ControllerRegistration{})
				return apierrors.IsNotFound(err), "it exists", client.IgnoreNotFound(err)
			})
			p.Check(cachetest.UseImage(ctx, p.Session.Testbed, cachetest.Image(p.Session.Testbed)))
			rig.Cached(rig.Alpha)(ctx, p)
		}),
	)
}
