package controller

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	kubernetesutils "github.com/gardener/gardener/pkg/utils/kubernetes"
	"github.com/gardener/gardener/pkg/utils/kubernetes/health"
	"github.com/gardener/gardener/pkg/utils/managedresources"
	"github.com/gardener/gardener/pkg/utils/managedresources/builder"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/controller/cache"
	"github.com/gardener-extensions/registry-cache/controller/certificate"
	"github.com/gardener-extensions/registry-cache/controller/monitoring"
	"github.com/gardener-extensions/registry-cache/controller/retry"
)

// buildFunc returns objects of one cache.
type buildFunc func(v1alpha3.RegistryCache, v1alpha3.Identity, cache.Shoot) ([]client.Object, error)

// deployCaches writes a ManagedResource with the objects and what build returns for each cache. A
// ManagedResource is applied only after the objects that it no longer contains are gone. That may
// take long for a pod or volume of a removed cache, so the Services are in another ManagedResource.
func (a *Actuator) deployCaches(ctx context.Context, t *target, name string, objects []client.Object, build buildFunc) error {
	shoot := shootOf(t.cluster.Shoot, a.images)
	for i, c := range t.config.Caches {
		built, err := build(c, t.identities[i], shoot)
		if err != nil {
			return err
		}
		objects = append(objects, built...)
	}
	return applyToShoot(ctx, writer{a.client, t.isNew}, t.ex.Namespace, name, objects)
}

// refuseForeignServices returns an error if a cache's Service already exists and does not belong to
// a cache: gardener-resource-manager would take it over. It checks only new names, and none while
// hibernation is enabled.
func refuseForeignServices(ctx context.Context, t *target) error {
	names := map[string]string{}
	for i := range t.config.Caches {
		c, id := &t.config.Caches[i], t.identities[i]
		if was := t.before.deployed(c.Upstream); was == nil || id.ServiceName(was) != id.ServiceName(c) {
			names[id.ServiceName(c)] = c.Upstream
		}
	}
	if t.hibernationEnabled() || len(names) == 0 {
		return nil
	}
	all := &corev1.ServiceList{}
	if err := t.shoot.List(ctx, all, client.InNamespace(metav1.NamespaceSystem)); err != nil {
		return fmt.Errorf("list the Services of the shoot: %w", err)
	}
	for _, service := range all.Items {
		if upstream, isWanted := names[service.Name]; isWanted && service.Labels[v1alpha3.LabelUpstreamHost] == "" {
			return configurationProblem(field.Forbidden(field.NewPath("caches").Key(upstream), fmt.Sprintf(
				"the Shoot has another Service kube-system/%s: delete it, or set another serviceNameSuffix", service.Name)))
		}
	}
	return nil
}

// observability makes gardenlet report problems of the monitoring in the condition
// ObservabilityComponentsHealthy, instead of ControlPlaneHealthy, the default in the seed.
var observability = map[string]string{v1beta1constants.LabelCareConditionType: string(gardencorev1beta1.ShootObservabilityComponentsHealthy)}

// deployMonitoring writes the ManagedResource for the shoot's Prometheus and Plutono. Shoots of
// purpose testing have neither.
func (a *Actuator) deployMonitoring(ctx context.Context, t *target) error {
	isUnwanted := ptr.Deref(t.cluster.Shoot.Spec.Purpose, "") == gardencorev1beta1.ShootPurposeTesting || t.hasNone()
	switch {
	case isUnwanted && t.before.takingOver:
		return kubernetesutils.DeleteObjects(ctx, a.client, monitoring.References(t.ex.Namespace)...)
	case isUnwanted && !t.isNew:
		return a.remove(ctx, t.ex.Namespace, false, monitoringName)
	case isUnwanted, len(t.config.Caches) == 0: // all are delayed
		return nil
	}
	objects := monitoring.Objects(t.ex.Namespace, t.config, t.identities)
	return apply(ctx, writer{a.client, t.isNew}, t.ex.Namespace, monitoringName, seedEncoder, objects, func(c client.Client) *builder.ManagedResource {
		return managedresources.NewForSeed(c, t.ex.Namespace, monitoringName, false).WithLabels(observability)
	})
}

// certify issues a certificate for every HTTPS cache, and returns the CA, or nil if there is no
// such cache. In a hibernated shoot, the address of a new cache is unknown. Until the shoot wakes
// up, its certificate contains only the names of its Service.
func (a *Actuator) certify(ctx context.Context, log logr.Logger, t *target) (*certificate.CA, error) {
	if !slices.ContainsFunc(t.config.Caches, cache.ServesTLS) {
		return nil, nil
	}
	ca, err := certificate.Load(ctx, log, a.clock, a.client, t.cluster, false)
	if err != nil {
		return nil, err
	}
	for i, c := range t.config.Caches {
		if cache.ServesTLS(c) {
			secrets := t.secrets[c.Upstream]
			if secrets.Certificate, err = ca.Issue(ctx, &c, t.identities[i]); err != nil {
				return nil, err
			}
			t.secrets[c.Upstream] = secrets
		}
	}
	return ca, nil
}

// awaitRollout waits until the caches serve, if the CA bundle is about to change: a node that
// drops the old CA too early would pull from the upstream. A cache that never becomes ready does
// not block the reconciliation for long.
func (a *Actuator) awaitRollout(ctx context.Context, log logr.Logger, t *target, ca *certificate.CA) error {
	was := t.before.status
	if ca == nil || was == nil || slices.Contains([]string{"", string(ca.Bundle)}, ptr.Deref(was.CABundle, "")) {
		return nil
	}
	return a.await(ctx, func() error {
		mr, err := a.managedResource(ctx, t.ex.Namespace, cachesName)
		if err != nil {
			return err
		}
		pending := cmp.Or(health.CheckManagedResourceApplied(mr), health.CheckManagedResourceProgressing(mr))
		if pending == nil {
			return nil
		}
		if a.clock.Since(written(mr)) >= rolloutLimit {
			log.Info("Not all caches are rolled out yet; until they are, nodes pull from the upstream", "reason", pending)
			return nil
		}
		return retry.Waiting(fmt.Errorf("the caches are not rolled out yet: %w", pending))
	})
}
