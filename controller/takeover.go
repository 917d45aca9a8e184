package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/gardener/gardener/pkg/utils/managedresources"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/controller/cache"
	"github.com/gardener-extensions/registry-cache/controller/certificate"
	"github.com/gardener-extensions/registry-cache/controller/monitoring"
)

// takeOver takes over the caches that gardener-extension-registry-cache has deployed. It lets them
// run as they are, and adds their NetworkPolicies of this extension. So nodes first get this
// extension's configuration, with which a pull soon goes on if a cache does not answer. The next
// reconciliation changes the caches, whose pods restart, and adds new ones.
func (a *Actuator) takeOver(ctx context.Context, log logr.Logger, t *target) error {
	log.Info("Configuring the nodes for the caches of gardener-extension-registry-cache")
	for _, name := range []string{servicesName, cachesName} {
		objects, err := managedresources.GetObjects(ctx, a.client, t.ex.Namespace, name)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("reading the deployed caches: %w", err)
		}
		objects = slices.DeleteFunc(objects, func(object client.Object) bool {
			_, isPolicy := object.(*networkingv1.NetworkPolicy)
			return t.leaving.Owner(object.GetLabels()) != "" || isPolicy && t.identities.Owner(object.GetLabels()) != ""
		})
		for i := range t.identities {
			if name == cachesName {
				objects = append(objects, cache.NetworkPolicy(t.config.Caches[i], t.identities[i]))
			}
		}
		if err := applyToShoot(ctx, a.client, t.ex.Namespace, name, objects); err != nil {
			return err
		}
	}
	r := t.before.retained(t.config)
	var bundle []byte
	if slices.ContainsFunc(r.status.Caches, func(c v1alpha3.RegistryCacheStatus) bool { return strings.HasPrefix(c.Endpoint, "https:") }) {
		ca, err := certificate.Load(ctx, log, a.clock, a.client, t.cluster)
		if err != nil {
			return err
		}
		bundle = ca.Bundle
	}
	for i := range r.status.Caches {
		if trusted := t.secrets[r.status.Caches[i].Upstream].CABundle; len(trusted) > 0 {
			r.status.Caches[i].UpstreamCABundle = new(string(trusted))
		}
	}
	r.status, r.running = newStatus(r.status.Caches, bundle), slices.Concat(t.identities, t.leaving)
	if err := a.deployMonitoring(ctx, t); err != nil {
		return err
	}
	if err := a.write(ctx, t.ex, r); err != nil {
		return err
	}
	a.tell(t.ex, corev1.EventTypeNormal, "TakenOver", "nodes are configured for the caches of the earlier extension: the next reconciliation changes the caches")
	return nil
}

// removeOriginal deletes what gardener-extension-registry-cache has created in the namespace of the
// control plane without a ManagedResource. Otherwise takeOver gives a ManagedResource to it.
func (a *Actuator) removeOriginal(ctx context.Context, namespace string) error {
	for _, object := range monitoring.References(namespace) {
		if err := client.IgnoreNotFound(a.client.Delete(ctx, object)); err != nil {
			return fmt.Errorf("deleting the %s of gardener-extension-registry-cache: %w", object.GetObjectKind().GroupVersionKind().Kind, err)
		}
	}
	return nil
}
