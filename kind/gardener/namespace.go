package gardener

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// EnsureGardenNamespace creates GardenNamespace in the seed if it is not there.
func EnsureGardenNamespace(ctx context.Context, seed client.Client) error {
	if err := apply(ctx, seed, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: GardenNamespace}}); err != nil {
		return fmt.Errorf("create the namespace %s of the seed: %w", GardenNamespace, err)
	}
	return nil
}
