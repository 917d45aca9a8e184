//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/e2e/rig"
	"github.com/gardener-extensions/registry-cache/kind/gardenlet"
)

// workerless proves that a shoot without workers gets a clear error instead of caches, and can be
// deleted. The admission would reject such a shoot, but the admission is optional.
func workerless() rig.Scenario {
	var (
		shoot  rig.SecondShoot
		object *gardencorev1beta1.Shoot
	)
	return rig.New("workerless",
		rig.Prove("the Extension of a shoot without workers is in Error with a clear message", func(ctx context.Context, p *rig.Run) {
			shoot = p.SecondShoot(ctx, "workerless")
			var err error
			object, err = shoot.WithCaches(rig.Alpha)
			p.Check(err)
			object = gardenlet.Workerless(object)
			message := awaitRefusal(ctx, p, shoot, object)
			if !strings.Contains(message, "worker") {
				p.Fatalf("the error does not mention workers: %s", message)
			}
			p.Evidence("refused: %s", message)
		}),

		rig.Prove("nothing was deployed for the shoot", func(ctx context.Context, p *rig.Run) {
			resource := &resourcesv1alpha1.ManagedResource{}
			resource.Namespace, resource.Name = shoot.Namespace, v1alpha3.ManagedResourceCaches
			p.Gone(ctx, p.Session.Seed, resource)
		}),

		rig.Prove("the shoot can be deleted", func(ctx context.Context, p *rig.Run) {
			start := time.Now()
			p.Check(shoot.Delete(ctx, object))
			p.Gone(ctx, p.Session.Seed, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: shoot.Namespace}})
			p.Evidence("deleted in %s", rig.Seconds(time.Since(start)))
		}),
	)
}

// awaitRefusal makes gardenlet reconcile the shoot, waits until its Extension is in Error, and
// returns the message. Then it stops gardenlet, which would keep waiting for a success.
func awaitRefusal(ctx context.Context, p *rig.Run, shoot rig.SecondShoot, object *gardencorev1beta1.Shoot) (message string) {
	p.Helper()
	flow := p.Background(ctx, func(ctx context.Context) error { return shoot.Reconcile(ctx, object) })
	defer flow.End() // the flow fails as intended; the Extension has the error
	p.Await(ctx, "the Extension of the shoot is in Error", time.Minute, func(ctx context.Context) (bool, string, error) {
		extension, err := shoot.Extension(ctx, p)
		if err != nil {
			return false, err.Error(), client.IgnoreNotFound(err)
		}
		if rig.StateOf(extension) != gardencorev1beta1.LastOperationStateError || extension.Status.LastError == nil {
			return false, fmt.Sprintf("state %q", rig.StateOf(extension)), nil
		}
		message = extension.Status.LastError.Description
		return true, "", nil
	})
	return message
}
