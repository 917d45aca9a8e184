package controller

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	v1beta1helper "github.com/gardener/gardener/pkg/api/core/v1beta1/helper"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	"github.com/gardener/gardener/pkg/utils/kubernetes/health"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/controller/cache"
	"github.com/gardener-extensions/registry-cache/controller/retry"
)

// awaitEndpoints waits for the Services of all configured caches. The error names the upstreams
// without a Service, and the reason. If a cache is added, gardener-resource-manager must first
// apply the current Services: it may still delete the Service of the upstream's earlier cache.
func (a *Actuator) awaitEndpoints(ctx context.Context, t *target) (found []v1alpha3.RegistryCacheStatus, err error) {
	someNew := slices.ContainsFunc(t.config.Caches, func(c v1alpha3.RegistryCache) bool { return len(t.before.endpoints(c.Upstream)) == 0 })
	if someNew { // the Services were just written and are not applied yet
		pauseFor(ctx, a.waits.interval/4)
	}
	err = a.await(ctx, func() error {
		if someNew && !t.isNew {
			mr, err := a.managedResource(ctx, t.ex.Namespace, servicesName)
			if err != nil {
				return err
			}
			if problem := notApplied(mr); mr.Status.ObservedGeneration != mr.Generation && !errors.Is(problem, errNotApplicable) {
				return problem
			}
		}
		services := &corev1.ServiceList{}
		if err := t.shoot.List(ctx, services, client.InNamespace(metav1.NamespaceSystem), client.HasLabels{v1alpha3.LabelUpstreamHost}); err != nil {
			return fmt.Errorf("list the services of the caches in the shoot: %w", err)
		}
		var missing []string
		if found, missing = matchServices(services.Items, t); len(missing) == 0 {
			return removeServices(ctx, t, services.Items)
		}
		mr, err := a.managedResource(ctx, t.ex.Namespace, servicesName)
		if err != nil {
			return err
		}
		return fmt.Errorf("no service in the shoot for upstream %s: %w", strings.Join(missing, ", "), notApplied(mr))
	})
	return found, err
}

// matchServices finds the Service of each cache, in the order of the config, and updates the
// addresses of the caches. It ignores a Service that has another name or upstream, is being
// deleted, or has no cluster IP.
func matchServices(services []corev1.Service, t *target) (found []v1alpha3.RegistryCacheStatus, missing []string) {
	for i, c := range t.config.Caches {
		id := &t.identities[i]
		at := slices.IndexFunc(services, func(s corev1.Service) bool {
			matches := s.Name == id.ServiceName(&c) && s.Labels[v1alpha3.LabelUpstreamHost] == id.HostLabel && s.Annotations[v1alpha3.AnnotationUpstream] == c.Upstream
			return matches && s.DeletionTimestamp == nil && s.Spec.ClusterIP != "" && s.Spec.ClusterIP != corev1.ClusterIPNone
		})
		if at < 0 {
			missing = append(missing, c.Upstream)
			continue
		}
		id.Address = services[at].Spec.ClusterIP
		found = append(found, statusOf(&c, id.Address, t.secrets[c.Upstream]))
	}
	return found, missing
}

// statusOf returns the status of a cache at an address.
func statusOf(c *v1alpha3.RegistryCache, address string, secrets cache.Secrets) v1alpha3.RegistryCacheStatus {
	endpoint := url.URL{Scheme: "http", Host: net.JoinHostPort(address, strconv.Itoa(v1alpha3.CachePort))}
	if cache.ServesTLS(*c) {
		endpoint.Scheme = "https"
	}
	return v1alpha3.RegistryCacheStatus{Upstream: c.Upstream, Endpoint: endpoint.String(), RemoteURL: *c.RemoteURL, UpstreamCABundle: upstreamBundle(secrets)}
}

// upstreamBundle returns the configured CAs of a cache's upstream, or nil if there are none.
func upstreamBundle(secrets cache.Secrets) *string {
	if len(secrets.CABundle) == 0 {
		return nil
	}
	return new(string(secrets.CABundle))
}

// errNotApplicable means that gardener-resource-manager has failed, and the cause must be fixed.
var errNotApplicable = errors.New("cannot be applied to the shoot")

// notApplied returns why the objects of the ManagedResource may be missing in the shoot. A failure
// may concern an earlier generation, because gardener-resource-manager records only those that it
// has applied.
func notApplied(mr *resourcesv1alpha1.ManagedResource) error {
	err := health.CheckManagedResourceApplied(mr)
	applied := v1beta1helper.GetCondition(mr.Status.Conditions, resourcesv1alpha1.ResourcesApplied)
	switch {
	case applied != nil && applied.Status == gardencorev1beta1.ConditionFalse:
		err = fmt.Errorf("ManagedResource %s %w: %s: %s", mr.Name, errNotApplicable, applied.Reason, applied.Message)
		if mr.Status.ObservedGeneration == mr.Generation {
			return err
		}
	case err == nil:
		err = fmt.Errorf("ManagedResource %s is applied, but the Service is missing, being deleted or has no cluster IP", mr.Name)
	default:
		err = fmt.Errorf("wait for gardener-resource-manager: %w", err)
	}
	return retry.Waiting(err)
}
