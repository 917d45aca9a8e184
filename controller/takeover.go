package controller

import (
	"cmp"
	"context"
	"slices"
	"strings"

	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/controller/cache"
)

// takeOver takes over the caches that gardener-extension-registry-cache has deployed. It adds
// NetworkPolicies and the monitoring, but does not change the caches. So nodes first get this
// extension's configuration, with which pulls soon bypass a cache that does not answer. The next
// reconciliation, but not a retry of this one, adds new caches, and changes the others, which
// restarts their pods.
func (a *Actuator) takeOver(ctx context.Context, log logr.Logger, t *target) error {
	log.Info("Configuring the nodes for the caches of gardener-extension-registry-cache")
	isNew := func(upstream string) bool { return len(t.before.endpoints(upstream)) == 0 }
	t.config.Caches = slices.DeleteFunc(t.config.Caches, func(c v1alpha3.RegistryCache) bool { return isNew(c.Upstream) })
	t.identities = slices.DeleteFunc(t.identities, func(id v1alpha3.Identity) bool { return isNew(id.Upstream) })
	r := t.before.retained(t.config)
	r.applied, r.running = t.config.DeepCopy(), slices.Concat(t.identities, t.leaving)
	for _, name := range []string{cachesName, servicesName} { // servicesName is last: by its Service, a retry finds a leaving cache
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
	r.takenOverAt = cmp.Or(t.ex.Annotations[v1beta1constants.GardenerTimestamp], "unknown")
	if err := a.writeWithCA(ctx, log, t.ex, t.cluster, r); err != nil {
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

// originalPolicy identifies the NetworkPolicy of gardener-extension-registry-cache for its caches.
var originalPolicy = metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "gardener.cloud--allow-registry-cache"}
