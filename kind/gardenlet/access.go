package gardenlet

import (
	"context"
	"fmt"

	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	"github.com/gardener/gardener/pkg/controllerutils"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// deployShootAccess creates the Secret that extensions use to access the shoot. In a real seed
// gardener-resource-manager requests a token for it; here it holds a kubeconfig of kind. While the
// shoot is hibernated, the kubeconfig points to a port where nothing listens.
func (o *shootOperation) deployShootAccess(ctx context.Context) error {
	kubeconfig := o.shootKubeconfig
	if o.apiServerStopped() {
		var err error
		if kubeconfig, err = unreachable(kubeconfig); err != nil {
			return err
		}
	}
	return o.writeShootAccess(ctx, kubeconfig)
}

func (o *shootOperation) writeShootAccess(ctx context.Context, kubeconfig []byte) error {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: o.Shoot.ControlPlaneNamespace,
		Name:      v1beta1constants.SecretNameGardener,
	}}
	_, err := controllerutils.GetAndCreateOrMergePatch(ctx, o.SeedClientSet.Client(), secret, func() error {
		secret.Type = corev1.SecretTypeOpaque
		secret.Data = map[string][]byte{kubernetes.KubeConfig: kubeconfig}
		return nil
	})
	if err != nil {
		return fmt.Errorf("write the shoot's kubeconfig to secret %s: %w", client.ObjectKeyFromObject(secret), err)
	}
	return nil
}

// deleteCluster deletes the Cluster resource, the last trace of a shoot in the seed.
func (o *shootOperation) deleteCluster(ctx context.Context) error {
	cluster := &extensionsv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: o.Shoot.ControlPlaneNamespace}}
	return client.IgnoreNotFound(o.SeedClientSet.Client().Delete(ctx, cluster))
}
