package controller

import (
	"cmp"
	"context"
	"slices"
	"strings"

	extensionscontroller "github.com/gardener/gardener/extensions/pkg/controller"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/controller/cache"
	"github.com/gardener-extensions/registry-cache/controller/certificate"
	"github.com/gardener-extensions/registry-cache/controller/reference"
	"github.com/gardener-extensions/registry-cache/controller/retry"
)

// takeOver takes over the caches that gardener-extension-registry-cache has deployed. It only adds
// NetworkPolicies, and does not change the caches. So nodes first get this extension's
// configuration, with which pulls soon bypass a cache that does not answer. The next
// reconciliation, but not a retry of this one, changes the caches, which restarts their pods, and
// adds new ones.
func (a *Actuator) takeOver(ctx context.Context, log logr.Logger, t *target) error {
	log.Info("Configuring the nodes for the caches of gardener-extension-registry-cache")
	isNew := func(upstream string) bool { return len(t.before.endpoints(upstream)) == 0 }
	t.config.Caches = slices.DeleteFunc(t.config.Caches, func(c v1alpha3.RegistryCache) bool { return isNew(c.Upstream) })
	t.identities = slices.DeleteFunc(t.identities, func(id v1alpha3.Identity) bool { return isNew(id.Upstream) })
	r := t.before.retained(t.config)
	r.applied, r.running = t.config.DeepCopy(), slices.Concat(t.identities, t.leaving)
	for _, name := range []string{cachesName, servicesName} { // a retry finds caches that are leaving by their Services
		objects, err := a.objects(ctx, t.ex.Namespace, name)
		if apierrors.IsNotFound(err) { // the running caches are unknown
			return a.deploy(ctx, log, t)
		}
		if err != nil {
			return err
		}
		objects = slices.DeleteFunc(objects, func(object client.Object) bool {
			upstream := t.identities.Owner(object.GetLabels())
			_, isPolicy := object.(*networkingv1.NetworkPolicy)
			if c := find(r.applied.Caches, upstream); c != nil {
				describe(object, c)
			}
			return t.leaving.Owner(object.GetLabels()) != "" || isPolicy && upstream != ""
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
	if err := a.deployMonitoring(ctx, t); err != nil {
		return err
	}
	for i, c := range r.reported() {
		r.status.Caches[i].UpstreamCABundle = upstreamBundle(t.secrets[c.Upstream])
		find(r.applied.Caches, c.Upstream).HTTP = &v1alpha3.HTTP{TLS: strings.HasPrefix(c.Endpoint, "https:")}
	}
	r.takenOverBy = cmp.Or(t.ex.Annotations[v1beta1constants.GardenerTimestamp], "unknown")
	if err := a.adopt(ctx, log, t.ex, t.cluster, r); err != nil {
		return err
	}
	a.tell(t.ex, corev1.EventTypeNormal, "TakenOver", "nodes are configured for the caches of the earlier extension: the next reconciliation changes the caches")
	return nil
}

// describe copies to c what is immutable in a cache's object, or known to nodes.
func describe(object client.Object, c *v1alpha3.RegistryCache) {
	switch o := object.(type) {
	case *appsv1.StatefulSet:
		for _, template := range o.Spec.VolumeClaimTemplates {
			c.Volume.StorageClassName = template.Spec.StorageClassName
		}
	case *corev1.Service:
		if c.ServiceNameSuffix = nil; o.Name != o.Labels[v1alpha3.LabelApp] {
			c.ServiceNameSuffix = new(strings.TrimPrefix(o.Name, "registry-"))
		}
	}
}

// originalPolicy is the NetworkPolicy of gardener-extension-registry-cache for all of its caches.
var originalPolicy = metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "gardener.cloud--allow-registry-cache"}

// restoreStatus writes the providerStatus of the running caches, as far as the state contains it.
// It ends an availability whose deployment was interrupted in the previous seed.
func (a *Actuator) restoreStatus(ctx context.Context, log logr.Logger, ex *extensionsv1alpha1.Extension, mistake error) error {
	r, err := recordOf(ex)
	if err != nil {
		return err
	}
	cluster, err := a.cluster(ctx, ex.Namespace)
	if err != nil {
		return err
	}
	applied := &v1alpha3.RegistryConfig{Caches: r.configured()}
	secrets, _, err := reference.Resolve(ctx, a.client, ex.Namespace, cluster.Shoot.Spec.Resources, applied)
	if err != nil && !retry.IsWaiting(err) { // a missing Secret may be the mistake itself
		return err
	}
	r.status = &v1alpha3.RegistryStatus{}
	shoot, err := a.shootClient(ctx, ex.Namespace)
	if err != nil {
		return err
	}
	for _, c := range applied.Caches {
		id, runs := r.running.Of(c.Upstream)
		if id.Address != "" {
			r.status.Caches = append(r.status.Caches, statusOf(&c, id.Address, secrets[c.Upstream]))
		}
		if runs && cache.Replicas(c) == 1 {
			if err := endAvailability(ctx, log, shoot, id); err != nil {
				return err
			}
		}
	}
	if err := a.adopt(ctx, log, ex, cluster, r); err != nil {
		return err
	}
	return a.report(ctx, ex, mistake)
}

// adopt writes the record with the CA of its reported caches, without changing them.
func (a *Actuator) adopt(ctx context.Context, log logr.Logger, ex *extensionsv1alpha1.Extension, cluster *extensionscontroller.Cluster, r record) (err error) {
	var ca *certificate.CA
	if slices.ContainsFunc(r.reported(), func(c v1alpha3.RegistryCacheStatus) bool { return strings.HasPrefix(c.Endpoint, "https:") }) {
		if ca, err = certificate.Load(ctx, log, a.clock, a.client, cluster, true); err != nil {
			return err
		}
	}
	r.status = newStatus(r.reported(), ca)
	return a.write(ctx, ex, r)
}
