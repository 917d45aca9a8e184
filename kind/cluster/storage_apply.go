package cluster

import (
	"context"
	"fmt"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/kind/cluster/storage"
	"github.com/gardener-extensions/registry-cache/kind/nodeimage"
)

const fieldManager = "registry-cache-testbed"

// applyStorage gives the cluster its default StorageClass, by images that are in the node image.
func (c *Cluster) applyStorage(ctx context.Context) error {
	if err := c.removeFallbackClass(ctx); err != nil {
		return err
	}
	objects, err := storage.Objects(nodeimage.LocalPathProvisionerImage, nodeimage.HelperImage)
	if err != nil {
		return err
	}
	for _, object := range objects {
		if err := c.client.Apply(ctx, object, client.FieldOwner(fieldManager), client.ForceOwnership); err != nil {
			return fmt.Errorf("applying the default StorageClass of %s: %w", c.name, err)
		}
	}
	return nil
}

// removeFallbackClass removes the StorageClass of the same name that kind creates for images without one of their own:
// nobody provisions its volumes, and a class's provisioner cannot be changed.
func (c *Cluster) removeFallbackClass(ctx context.Context) error {
	var class storagev1.StorageClass
	err := c.client.Get(ctx, client.ObjectKey{Name: storage.ClassName}, &class)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("default StorageClass of %s: %w", c.name, err)
	}
	if err != nil || class.Provisioner == storage.ClassProvisioner {
		return nil
	}
	uid := client.Preconditions{UID: &class.UID, ResourceVersion: &class.ResourceVersion}
	err = c.client.Delete(ctx, &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: class.Name}}, uid)
	return client.IgnoreNotFound(err)
}
