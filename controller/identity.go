package controller

import (
	"context"
	"fmt"
	"slices"

	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	"github.com/gardener/gardener/pkg/utils/managedresources"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

// identify sets the identities of the configured caches. An interrupted attempt and an early
// version have not recorded them, so identify reads them from the ManagedResources.
func (a *Actuator) identify(ctx context.Context, t *target) error {
	running := t.before.running
	unrecorded := func(c v1alpha3.RegistryCache) bool { _, ok := running.Of(c.Upstream); return !ok }
	if !t.isNew && slices.ContainsFunc(t.config.Caches, unrecorded) {
		services, err := a.deployedServices(ctx, t.ex.Namespace, servicesName)
		if err != nil {
			return err
		}
		if t.misplaced, err = a.deployedServices(ctx, t.ex.Namespace, cachesName); err != nil {
			return err
		}
		running = withServices(running, slices.Concat(services, t.misplaced))
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

// deployedServices returns the Services in a ManagedResource, none if it does not exist.
func (a *Actuator) deployedServices(ctx context.Context, namespace, name string) ([]*corev1.Service, error) {
	mr, err := a.managedResource(ctx, namespace, name)
	if err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	var services []*corev1.Service
	for _, reference := range mr.Spec.SecretRefs {
		secret := &corev1.Secret{}
		if err := a.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: reference.Name}, secret); err != nil {
			return nil, fmt.Errorf("reading Secret %s of ManagedResource %s: %w", reference.Name, name, err)
		}
		objects, err := managedresources.ExtractObjectsFromSecret(kubernetes.ShootCodec.UniversalDeserializer(), secret)
		if err != nil {
			return nil, fmt.Errorf("decoding Secret %s of ManagedResource %s: %w", reference.Name, name, err)
		}
		for _, object := range objects {
			if service, ok := object.(*corev1.Service); ok {
				services = append(services, service)
			}
		}
	}
	return services, nil
}

// released returns the Services that an early version deployed together with the caches. If they
// simply left that ManagedResource, gardener-resource-manager would delete them, and the caches
// would get new addresses. With this annotation it only forgets them.
func (t *target) released() []client.Object {
	var objects []client.Object
	for _, service := range t.misplaced {
		service.Annotations = map[string]string{resourcesv1alpha1.Mode: resourcesv1alpha1.ModeIgnore}
		objects = append(objects, service)
	}
	return objects
}
