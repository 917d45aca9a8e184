package controller

import (
	"context"
	"fmt"
	"slices"

	"github.com/gardener/gardener/pkg/utils/managedresources"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

// identify sets the identities of the configured caches. An interrupted attempt has not recorded
// them, so identify reads them from the ManagedResource with the Services.
func (a *Actuator) identify(ctx context.Context, t *target) error {
	running := t.before.running
	unrecorded := func(c v1alpha3.RegistryCache) bool { _, ok := running.Of(c.Upstream); return !ok }
	if !t.isNew && slices.ContainsFunc(t.config.Caches, unrecorded) {
		services, err := managedresources.GetObjects(ctx, a.client, t.ex.Namespace, servicesName)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("reading the Services of the caches: %w", err)
		}
		running = withServices(running, services)
	}
	t.identities = v1alpha3.Identify(t.config.Caches, running)
	for i := range t.identities {
		if id := &t.identities[i]; id.Address == "" {
			id.Address = hostOf(t.before.endpoint(id.Upstream))
		}
	}
	return nil
}

// withServices adds the identities of caches that have a Service, by the labels of the Services.
func withServices(running v1alpha3.Identities, services []client.Object) v1alpha3.Identities {
	running = slices.Clone(running)
	for _, service := range services {
		upstream, labels := service.GetAnnotations()[v1alpha3.AnnotationUpstream], service.GetLabels()
		if _, known := running.Of(upstream); known || upstream == "" {
			continue
		}
		running = append(running, v1alpha3.Identity{
			Upstream: upstream, Name: labels[v1alpha3.LabelApp], HostLabel: labels[v1alpha3.LabelUpstreamHost],
		})
	}
	return running
}
