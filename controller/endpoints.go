package controller

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1beta1helper "github.com/gardener/gardener/pkg/api/core/v1beta1/helper"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/controller/cache"
)

// awaitEndpoints returns the endpoint of every configured cache, in the order of the config. If some cache has no
// Service a short while after its deployment, the error names the upstreams and why; the reconciliation is then retried
// with exponential backoff. If one of the caches is new, what the Services say counts only after
// gardener-resource-manager applied the current state: before, it may still delete the Service of an earlier cache of
// the same upstream.
func (a *Actuator) awaitEndpoints(
	ctx context.Context, namespace string, config *v1alpha3.RegistryConfig, someNew bool,
) ([]v1alpha3.RegistryCacheStatus, error) {
	shoot, err := a.shootClient(ctx, namespace)
	if err != nil {
		return nil, err
	}
	var caches []v1alpha3.RegistryCacheStatus
	var pending error
	started := time.Now()
	// The requests have a time limit of their own. With the one of the poll, the last of them would fail on it, and what is
	// missing would not be reported but "client rate limiter Wait returned an error: context deadline exceeded".
	err = wait.PollUntilContextTimeout(ctx, a.waits.interval, a.waits.endpoints, true, func(context.Context) (bool, error) {
		caches, pending = a.endpoints(ctx, shoot, namespace, config, someNew)
		if errors.Is(pending, errNotApplicable) && time.Since(started) >= a.waits.applied {
			return false, pending
		}
		return pending == nil, nil
	})
	if err != nil {
		return nil, errors.Join(pending, ctx.Err())
	}
	return caches, nil
}

// endpoints looks once. The error says what is still missing.
func (a *Actuator) endpoints(
	ctx context.Context, shoot client.Client, namespace string, config *v1alpha3.RegistryConfig, someNew bool,
) ([]v1alpha3.RegistryCacheStatus, error) {
	services := &corev1.ServiceList{}
	if err := shoot.List(ctx, services, client.InNamespace(metav1.NamespaceSystem), client.HasLabels{cache.LabelUpstreamHost}); err != nil {
		return nil, fmt.Errorf("listing the services of the caches in the shoot: %w", err)
	}
	mr, err := a.managedResource(ctx, namespace, cachesName)
	if err != nil {
		return nil, err
	}
	found, missing := matchServices(services.Items, config.Caches)
	if len(missing) > 0 {
		return nil, fmt.Errorf("no service in the shoot for upstream %s: %w", strings.Join(missing, ", "), notApplied(mr))
	}
	applied := v1beta1helper.GetCondition(mr.Status.Conditions, resourcesv1alpha1.ResourcesApplied)
	failed := applied != nil && applied.Status == gardencorev1beta1.ConditionFalse
	outdated := someNew && mr.Status.ObservedGeneration != mr.Generation
	if failed || outdated {
		return nil, notApplied(mr)
	}
	return found, nil
}

// matchServices finds the Service of each cache. Services of others that carry the same label, Services that are being
// deleted and ones that have no cluster IP yet do not count. The endpoints come in the order of caches.
func matchServices(services []corev1.Service, caches []v1alpha3.RegistryCache) (found []v1alpha3.RegistryCacheStatus, missing []string) {
	for _, c := range caches {
		ip := clusterIP(services, c.Upstream)
		if ip == "" {
			missing = append(missing, c.Upstream)
			continue
		}
		found = append(found, v1alpha3.RegistryCacheStatus{
			Upstream:  c.Upstream,
			Endpoint:  "http://" + net.JoinHostPort(ip, strconv.Itoa(int(cache.Port))),
			RemoteURL: *c.RemoteURL,
		})
	}
	return found, missing
}

func clusterIP(services []corev1.Service, upstream string) string {
	for _, service := range services {
		ours := service.Name == v1alpha3.Name(upstream) &&
			service.Labels[cache.LabelUpstreamHost] == v1alpha3.HostLabel(upstream) &&
			service.Annotations[cache.AnnotationUpstream] == upstream
		if ours && service.DeletionTimestamp == nil && service.Spec.ClusterIP != corev1.ClusterIPNone {
			return service.Spec.ClusterIP
		}
	}
	return ""
}

// errNotApplicable says that waiting does not help until somebody changes something.
var errNotApplicable = errors.New("cannot be applied to the shoot")

// notApplied says why the objects of the ManagedResource may not be in the shoot.
func notApplied(mr *resourcesv1alpha1.ManagedResource) error {
	applied := v1beta1helper.GetCondition(mr.Status.Conditions, resourcesv1alpha1.ResourcesApplied)
	switch {
	case applied != nil && applied.Status == gardencorev1beta1.ConditionFalse:
		return fmt.Errorf("ManagedResource %s %w: %s: %s", mr.Name, errNotApplicable, applied.Reason, applied.Message)
	case applied != nil && applied.Status != gardencorev1beta1.ConditionTrue:
		return fmt.Errorf("ManagedResource %s: %s: %s", mr.Name, applied.Reason, applied.Message)
	case applied == nil || mr.Status.ObservedGeneration != mr.Generation:
		return fmt.Errorf("ManagedResource %s is not reconciled by gardener-resource-manager yet", mr.Name)
	default:
		return fmt.Errorf("ManagedResource %s is applied, but the service is missing, being deleted or without cluster IP", mr.Name)
	}
}
