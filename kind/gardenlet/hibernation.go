package gardenlet

import (
	"context"
	"fmt"
	"net"
	"net/url"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"k8s.io/client-go/tools/clientcmd"
)

// asleep says that gardenlet has no API server of the shoot running while its flow runs: it sleeps already, or is created
// or restored asleep. A shoot that goes to sleep has one until the end of the flow; one that is deleted or migrated is
// woken up (gardenlet's determineControllerReplicas).
func (o *shootOperation) asleep() bool {
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

// hibernateControlPlane stops gardener-resource-manager, as gardenlet does, and cuts extensions off from the API server of
// the shoot, which gardenlet would stop too. kind's API server and controllers go on: nobody but the testbed may notice.
func (o *shootOperation) hibernateControlPlane(ctx context.Context) error {
	kubeconfig, err := unreachable(o.shootKubeconfig)
	if err != nil {
		return err
	}
	if err := o.writeShootAccess(ctx, kubeconfig); err != nil {
		return err
	}
	manager := o.resourceManager
	manager.Stopped = true
	if err := manager.Deploy(ctx, o.SeedClientSet.Client()); err != nil {
		return err
	}
	return manager.WaitStopped(ctx, o.SeedClientSet.Client())
}

// unreachable returns the kubeconfig with a port at which nothing listens: connections are refused, as those to a Service
// whose API server is scaled down.
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
