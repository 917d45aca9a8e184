package controller

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	"github.com/gardener/gardener/pkg/utils/managedresources"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/controller/cache"
)

const (
	// cachesName is the name of the ManagedResource with the caches.
	cachesName = "extension-registry-cache"
	// cleanerName is the name of the ManagedResource with the cleaner.
	cleanerName = "extension-registry-cleaner"
	// origin keeps gardenlet from deleting our ManagedResources together with its own ones.
	origin = "registry-cache"
)

func newRegistry() *managedresources.Registry {
	return managedresources.NewRegistry(kubernetes.ShootScheme, kubernetes.ShootCodec, kubernetes.ShootSerializer)
}

// deployCaches writes the ManagedResource with the objects of all caches. Volumes of caches that are no longer in it are
// deleted with them.
func (a *Actuator) deployCaches(ctx context.Context, namespace string, config *v1alpha3.RegistryConfig) error {
	var objects []client.Object
	for _, c := range config.Caches {
		these, err := cache.Objects(c, cache.Shoot{Image: a.images.RegistryCache}, cache.Secrets{})
		if err != nil {
			return err
		}
		objects = append(objects, these...)
	}
	data, err := newRegistry().AddAllAndSerialize(objects...)
	if err != nil {
		return fmt.Errorf("serializing the caches: %w", err)
	}
	secretName, secret := managedresources.NewSecret(a.client, namespace, cachesName, data, true)
	if err := secret.Reconcile(ctx); err != nil {
		return fmt.Errorf("writing the secret of ManagedResource %s: %w", cachesName, err)
	}
	caches := managedresources.NewForShoot(a.client, namespace, cachesName, origin, false).
		WithSecretRef(secretName).
		DeletePersistentVolumeClaims(true)
	if err := caches.Reconcile(ctx); err != nil {
		return fmt.Errorf("writing ManagedResource %s: %w", cachesName, err)
	}
	return nil
}

func (a *Actuator) managedResource(ctx context.Context, namespace, name string) (*resourcesv1alpha1.ManagedResource, error) {
	mr := &resourcesv1alpha1.ManagedResource{}
	if err := a.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, mr); err != nil {
		return nil, fmt.Errorf("reading ManagedResource %s: %w", name, err)
	}
	return mr, nil
}

// remove deletes the named ManagedResources and waits until they, and with them their objects in the shoot, are gone.
func (a *Actuator) remove(ctx context.Context, namespace string, names ...string) error {
	if err := a.requestDeletion(ctx, namespace, names...); err != nil {
		return err
	}
	for _, name := range names {
		timed, cancel := context.WithTimeout(ctx, a.waits.deleted)
		err := managedresources.WaitUntilDeleted(timed, a.client, namespace, name)
		cancel()
		if err != nil {
			return fmt.Errorf("ManagedResource %s was not deleted within %s: %w", name, a.waits.deleted, err)
		}
	}
	return nil
}

func (a *Actuator) requestDeletion(ctx context.Context, namespace string, names ...string) error {
	for _, name := range names {
		if err := managedresources.DeleteForShoot(ctx, a.client, namespace, name); err != nil {
			return fmt.Errorf("deleting ManagedResource %s: %w", name, err)
		}
	}
	return nil
}

// keepCaches makes the objects of the caches stay when their ManagedResource goes.
func (a *Actuator) keepCaches(ctx context.Context, namespace string) error {
	if err := managedresources.SetKeepObjects(ctx, a.client, namespace, cachesName, true); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("keeping the objects of ManagedResource %s: %w", cachesName, err)
	}
	return nil
}
