package controller

import (
	"context"
	"net/url"
	"slices"

	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

// identify sets the identities of the configured caches. If the record lacks one, identify reads it
// from the deployed objects: an early version and gardener-extension-registry-cache record none.
func (a *Actuator) identify(ctx context.Context, t *target) error {
	running := t.before.retained(t.config).running
	unrecorded := func(upstream string) bool { _, known := running.Of(upstream); return !known }
	if !t.isNew && (t.before.empty() || slices.ContainsFunc(t.before.upstreams(), unrecorded)) {
		var err error
		if running, err = a.deployedIdentities(ctx, t); err != nil {
			return err
		}
	}
	t.identities = v1alpha3.Identify(t.config.Caches, running)
	for i := range t.identities {
		id := &t.identities[i]
		for _, endpoint := range t.before.endpoints(id.Upstream) {
			if parsed, err := url.Parse(endpoint); err == nil && id.Address == "" {
				id.Address = parsed.Hostname()
			}
		}
	}
	t.leaving = slices.DeleteFunc(slices.Clone(running), func(id v1alpha3.Identity) bool { return find(t.config.Caches, id.Upstream) != nil })
	a.keepPreviousServices(t)
	return nil
}

// keepPreviousServices updates the previous Services of the caches. Time in hibernation does not
// count: nodes wake up with the previous address.
func (a *Actuator) keepPreviousServices(t *target) {
	now := metav1.NewTime(a.clock.Now()).Rfc3339Copy()
	var taken []string
	for i := range t.identities {
		taken = append(taken, t.identities[i].ServiceName(&t.config.Caches[i]))
	}
	for i := range t.identities {
		id := &t.identities[i]
		previous := slices.Clone(id.Previous)
		if was := t.before.deployed(id.Upstream); was != nil {
			name := id.ServiceName(was)
			previous = slices.DeleteFunc(previous, func(p v1alpha3.PreviousService) bool { return p.Name == name })
			previous = append(previous, v1alpha3.PreviousService{Name: name, Since: now})
		}
		for n := range previous {
			if t.hibernationEnabled() {
				previous[n].Since = now
			}
		}
		id.Previous = slices.DeleteFunc(previous, func(p v1alpha3.PreviousService) bool {
			return slices.Contains(taken, p.Name) || now.Sub(p.Since.Time) >= previousFor
		})
	}
}

// removeServices deletes previous Services that are no longer kept. A Service of a removed cache is
// deleted with its claims.
func removeServices(ctx context.Context, t *target, services []corev1.Service) error {
	var unwanted []client.Object
	for _, service := range services {
		i := slices.IndexFunc(t.identities, func(id v1alpha3.Identity) bool { return id.Name == service.Labels[v1alpha3.LabelApp] })
		if i >= 0 && service.Annotations[v1alpha3.AnnotationUpstream] != "" && t.identities[i].ServiceName(&t.config.Caches[i]) != service.Name &&
			!slices.ContainsFunc(t.identities[i].Previous, func(p v1alpha3.PreviousService) bool { return p.Name == service.Name }) {
			unwanted = append(unwanted, &service)
		}
	}
	return unlessRefused(logr.FromContextOrDiscard(ctx), deleteAll(ctx, t.shoot, nil, unwanted...), "delete the Services of renamed caches")
}

// deployedIdentities returns the recorded identities and those of the deployed Services. An early
// version deployed Services together with the caches. If they simply left that ManagedResource,
// gardener-resource-manager would delete them, and the caches would get new addresses. An
// annotation makes it release them.
func (a *Actuator) deployedIdentities(ctx context.Context, t *target) (v1alpha3.Identities, error) {
	running, ordered := t.before.retained(t.config).running, map[string]bool{}
	for _, name := range []string{servicesName, cachesName} {
		objects, err := a.objects(ctx, t.ex.Namespace, name)
		if client.IgnoreNotFound(err) != nil {
			return nil, err
		}
		for _, object := range objects {
			if set, ok := object.(*appsv1.StatefulSet); ok {
				ordered[set.Name] = set.Spec.PodManagementPolicy != appsv1.ParallelPodManagement
			}
			upstream, labels := object.GetAnnotations()[v1alpha3.AnnotationUpstream], object.GetLabels()
			if upstream == "" { // not a Service that nodes pull from
				continue
			}
			if name == cachesName {
				object.SetAnnotations(map[string]string{v1alpha3.AnnotationUpstream: upstream, resourcesv1alpha1.Mode: resourcesv1alpha1.ModeIgnore})
				t.released = append(t.released, object)
			}
			if _, known := running.Of(upstream); !known {
				running = append(running, v1alpha3.Identity{Upstream: upstream, Name: labels[v1alpha3.LabelApp], HostLabel: labels[v1alpha3.LabelUpstreamHost]})
			}
		}
	}
	for i := range running {
		running[i].OrderedReady = running[i].OrderedReady || ordered[running[i].Name]
	}
	return running, nil
}
