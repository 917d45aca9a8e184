package gardenlet

import (
	"context"

	kubernetesutils "github.com/gardener/gardener/pkg/utils/kubernetes"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// waitUntilNamespaceDeleted is gardenlet's WaitUntilSeedNamespaceDeleted, which looks every five seconds only. The flow
// bounds it.
func (o *shootOperation) waitUntilNamespaceDeleted(ctx context.Context) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: o.Shoot.ControlPlaneNamespace}}
	return kubernetesutils.WaitUntilResourceDeleted(ctx, o.SeedClientSet.Client(), namespace, pollInterval)
}
