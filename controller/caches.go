package controller

import (
	"context"
	"fmt"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	"github.com/gardener/gardener/pkg/utils/managedresources"
	"github.com/gardener/gardener/pkg/utils/managedresources/builder"

	"github.com/gardener-extensions/registry-cache/controller/cache"
	"github.com/gardener-extensions/registry-cache/controller/monitoring"
)

// writer returns the client to write ManagedResources with.
func (a *Actuator) writer(t *target) client.Client {
	if t.isNew {
		return createOnly{a.client}
	}
	return a.client
}

// deployCaches writes the ManagedResource with the objects of all caches. Volumes of caches that it
// no longer contains are deleted.
func (a *Actuator) deployCaches(ctx context.Context, t *target) error {
	shoot := shootOf(t.cluster.Shoot, a.images.RegistryCache)
	var objects []client.Object
	for _, c := range t.config.Caches {
		cacheObjects, err := cache.Objects(c, shoot, t.secrets[c.Upstream])
		if err != nil {
			return err
		}
		objects = append(objects, cacheObjects...)
	}
	previous, err := t.previousServices(shoot)
	if err != nil {
		return err
	}
	objects = append(objects, previous...)
	data, err := encodeManifests(shootEncoder, objects)
	if err != nil {
		return err
	}
	return apply(ctx, a.writer(t), t.ex.Namespace, cachesName, data, func(c client.Client) *builder.ManagedResource {
		return managedresources.NewForShoot(c, t.ex.Namespace, cachesName, origin, false).DeletePersistentVolumeClaims(true)
	})
}

// deployMonitoring writes the ManagedResource for the shoot's Prometheus and Plutono. It removes it
// from shoots of purpose testing, which have neither.
func (a *Actuator) deployMonitoring(ctx context.Context, t *target) error {
	if ptr.Deref(t.cluster.Shoot.Spec.Purpose, "") == gardencorev1beta1.ShootPurposeTesting {
		if t.isNew {
			return nil
		}
		return a.remove(ctx, t.ex.Namespace, monitoringName)
	}
	objects, err := monitoring.Objects(t.ex.Namespace, t.config)
	if err != nil {
		return err
	}
	data, err := encodeManifests(seedEncoder, objects)
	if err != nil {
		return err
	}
	return apply(ctx, a.writer(t), t.ex.Namespace, monitoringName, data, func(c client.Client) *builder.ManagedResource {
		return managedresources.NewForSeed(c, t.ex.Namespace, monitoringName, false)
	})
}

// requestReconciliation makes gardener-resource-manager reconcile a ManagedResource that has not
// changed.
func (a *Actuator) requestReconciliation(ctx context.Context, namespace, name string) error {
	mr := &resourcesv1alpha1.ManagedResource{}
	mr.Namespace, mr.Name = namespace, name
	patch := client.MergeFrom(mr.DeepCopy())
	mr.Annotations = map[string]string{v1beta1constants.GardenerOperation: v1beta1constants.GardenerOperationReconcile}
	if err := a.client.Patch(ctx, mr, patch); err != nil {
		return fmt.Errorf("requesting the reconciliation of ManagedResource %s: %w", name, err)
	}
	return nil
}
