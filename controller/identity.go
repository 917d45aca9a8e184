package controller

import (
	"context"
	"fmt"
	"slices"

	"github.com/gardener/gardener/pkg/utils/managedresources"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

// identify sets the identities of the configured caches. An interrupted attempt has not recorded
// them, so identify reads them from the ManagedResource with the Services.
func (a *Actuator) identify(ctx context.Context, t *target) error {
	running := t.before.running
	unrecorded := func(c v1alpha3.RegistryCache) bool { _, ok := running.Of(c.Upstream); return !ok }
	if !t.isNew && slices.ContainsFunc(t.config.Caches, unrecorded) {
		services, err := a.deployedServices(ctx, t.ex.Namespace)
		if err != nil {
			return err
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

// withServices adds the identities of caches with a Service.
func withServices(running v1alpha3.Identities, services []*corev1.Service) v1alpha3.Identities {
	running = slices.Clone(running)
	for _, service := range services {
		upstream := service.Annotations[v1alpha3.AnnotationUpstream]
		if _, known := running.Of(upstream); known || upstream == "" {
			continue
		}
		running = append(running, v1alpha3.Identity{
			Upstream: upstream, Name: service.Labels[v1alpha3.LabelApp], HostLabel: service.Labels[v1alpha3.LabelUpstreamHost],
		})
	}
	return running
}

// deployedServices returns the Services of the caches, none if they were never deployed.
func (a *Actuator) deployedServices(ctx context.Context, namespace string) ([]*corev1.Service, error) {
	objects, err := managedresources.GetObjects(ctx, a.client, namespace, servicesName)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading the Services of the caches: %w", err)
	}
	var services []*corev1.Service
	for _, object := range objects {
		if service, ok := object.(*corev1.Service); ok {
			services = append(services, service)
		}
	}
	return services, nil
}
