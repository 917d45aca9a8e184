package gardenlet

import (
	"context"
	"fmt"
	"net"
	"net/url"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	"github.com/gardener/gardener/pkg/controllerutils"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// deployShootAccess creates the Secret that extensions use to access the shoot. In a real seed
// gardener-resource-manager requests a token for it; here it contains kind's kubeconfig. While
// the shoot is hibernated, the kubeconfig points to a port where nothing listens.
func (o *shootOperation) deployShootAccess(ctx context.Context) error {
	return o.writeShootAccess(ctx, o.apiServerStopped())
}

func (o *shootOperation) writeShootAccess(ctx context.Context, stopped bool) (err error) {
	kubeconfig := o.gardenlet.ShootKubeconfig
	if stopped {
		if kubeconfig, err = unreachable(kubeconfig); err != nil {
			return err
		}
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: o.Shoot.ControlPlaneNamespace, Name: v1beta1constants.SecretNameGardener,
	}}
	_, err = controllerutils.GetAndCreateOrMergePatch(ctx, o.SeedClientSet.Client(), secret, func() error {
		secret.Type, secret.Data = corev1.SecretTypeOpaque, map[string][]byte{kubernetes.KubeConfig: kubeconfig}
		return nil
	})
	if err != nil {
		return fmt.Errorf("write the shoot's kubeconfig to secret %s: %w", client.ObjectKeyFromObject(secret), err)
	}
	return nil
}

// apiServerStopped reports whether a real shoot would have no API server during its flow: the shoot
// is already hibernated, or it is created or restored hibernated. A shoot that is being hibernated
// has an API server until the end of the flow; a shoot that is deleted or migrated is woken up
// (gardenlet's determineControllerReplicas).
func (o *shootOperation) apiServerStopped() bool {
	status := o.Shoot.GetInfo().Status
	switch status.LastOperation.Type {
	case gardencorev1beta1.LastOperationTypeCreate, gardencorev1beta1.LastOperationTypeRestore:
		return o.Shoot.HibernationEnabled
	case gardencorev1beta1.LastOperationTypeReconcile:
		return o.Shoot.HibernationEnabled && status.IsHibernated
	default:
		return false
	}
}

// hibernateControlPlane stops gardener-resource-manager, as gardenlet does. gardenlet would also
// stop the shoot's API server; here only the kubeconfig for extensions becomes useless. kind's API
// server and controllers continue to run, but only the testbed can reach them.
func (o *shootOperation) hibernateControlPlane(ctx context.Context) error {
	if err := o.writeShootAccess(ctx, true); err != nil {
		return err
	}
	manager := o.resourceManager
	manager.Stopped = true
	if err := manager.Deploy(ctx, o.SeedClientSet.Client()); err != nil {
		return err
	}
	return manager.WaitStopped(ctx, o.SeedClientSet.Client())
}

// unreachable returns the kubeconfig with a port where nothing listens: connections are refused, as
// they are by the Service of an API server with zero replicas.
func unreachable(kubeconfig []byte) ([]byte, error) {
	config, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("decode the shoot's kubeconfig: %w", err)
	}
	for name, cluster := range config.Clusters {
		server, err := url.Parse(cluster.Server)
		if err != nil {
			return nil, fmt.Errorf("server of cluster %s in the shoot's kubeconfig: %w", name, err)
		}
		server.Host = net.JoinHostPort(server.Hostname(), "1")
		cluster.Server = server.String()
	}
	return clientcmd.Write(*config)
}
