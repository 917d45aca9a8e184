package controller

import (
	"context"

	extensionscontroller "github.com/gardener/gardener/extensions/pkg/controller"
)

// hibernationEnabled returns whether the Shoot's spec enables hibernation. If so, the shoot's API
// server is stopped or will stop soon.
func (t *target) hibernationEnabled() bool {
	return extensionscontroller.IsHibernationEnabled(t.cluster)
}

// removeFrom is like remove, but does not wait for the objects in a hibernated shoot, which are
// deleted when it wakes up. A wait would keep the Extension until then, and block a new one.
func (a *Actuator) removeFrom(ctx context.Context, cluster *extensionscontroller.Cluster, names ...string) error {
	namespace := cluster.ObjectMeta.Name
	// Hibernation stops gardener-resource-manager. A shoot that is being deleted wakes up first.
	if !extensionscontroller.IsHibernated(cluster) || cluster.Shoot.DeletionTimestamp != nil {
		return a.remove(ctx, namespace, names...)
	}
	var inSeed []string
	for _, name := range names {
		if name == monitoringName {
			inSeed = append(inSeed, name)
		} else if _, err := a.requestDeletion(ctx, namespace, name); err != nil {
			return err
		}
	}
	return a.remove(ctx, namespace, inSeed...)
}
