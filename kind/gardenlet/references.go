package gardenlet

import (
	"context"
	"fmt"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// CheckReferences fails if a Secret that the shoot refers to in spec.resources is not in the garden, with the path of the
// entry: what a garden refuses when a Shoot is written, and a flow would find out only after it has begun.
func (g *Gardenlet) CheckReferences(ctx context.Context, shoot *gardencorev1beta1.Shoot) error {
	for i, resource := range shoot.Spec.Resources {
		if resource.ResourceRef.Kind != "Secret" {
			continue
		}
		key := client.ObjectKey{Namespace: ProjectNamespace, Name: resource.ResourceRef.Name}
		if err := g.Garden.Get(ctx, key, &corev1.Secret{}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("read secret %s in the garden: %w", key, err)
		} else if err != nil {
			return fmt.Errorf("spec.resources[%d]: there is no Secret %s in the garden: write it into the file of the Shoot", i, key.Name)
		}
	}
	return nil
}
