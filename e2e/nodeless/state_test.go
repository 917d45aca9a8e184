//go:build e2e

package nodeless

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/cachetest"
	"github.com/gardener-extensions/registry-cache/e2e/rig"
	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

// cached returns the function of a step that configures caches for exactly these upstreams.
func cached(hosts ...string) func(context.Context, *rig.Run) {
	return func(ctx context.Context, p *rig.Run) { configure(ctx, p, nil, rig.PlainCaches(hosts...)...) }
}

// configure makes gardenlet reconcile the shoot with exactly these caches, proves that each has an
// endpoint, and waits until the StatefulSet controller has created their pods.
func configure(ctx context.Context, p *rig.Run, refer rig.References, caches ...v1alpha3.RegistryCache) {
	p.Helper()
	shoot, err := p.Session.ShootWith(refer, caches...)
	p.Check(err)
	p.Check(p.Session.Testbed.Gardenlet.Reconcile(ctx, shoot))
	if state := rig.StateOf(p.Extension(ctx)); state != gardencorev1beta1.LastOperationStateSucceeded {
		p.Fatalf("the Extension is %s, want Succeeded", state)
	}
	proveEndpoints(ctx, p, rig.Upstreams(caches)...)
	awaitPods(ctx, p, len(caches))
}

// podsTimeout bounds how long the StatefulSet controller takes to create the pods.
const podsTimeout = 30 * time.Second

// awaitPods waits until the StatefulSet controller has created the pods of exactly this number of
// caches.
func awaitPods(ctx context.Context, p *rig.Run, caches int) {
	p.Helper()
	p.Await(ctx, "the caches have pods", podsTimeout, func(ctx context.Context) (bool, string, error) {
		sets := &appsv1.StatefulSetList{}
		err := p.Session.Shoot.List(ctx, sets, client.InNamespace(metav1.NamespaceSystem), client.HasLabels{v1alpha3.LabelUpstreamHost})
		done := len(sets.Items) == caches
		for _, set := range sets.Items {
			done = done && set.Status.ObservedGeneration == set.Generation && set.Status.Replicas == ptr.Deref(set.Spec.Replicas, 1)
		}
		return done, fmt.Sprintf("%d StatefulSets, not all with pods", len(sets.Items)), err
	})
}

// proveEndpoints proves that the Extension's status contains the cluster IP of each of these
// upstreams' Services, and no other endpoint.
func proveEndpoints(ctx context.Context, p *rig.Run, hosts ...string) {
	p.Helper()
	if endpoints, want := p.Endpoints(ctx), wantedEndpoints(ctx, p, hosts...); !maps.Equal(endpoints, want) {
		p.Fatalf("the endpoints are %v, want %v", endpoints, want)
	}
}

// wantedEndpoints maps each of these upstreams to the URL of its Service. There must be no other
// Service of a cache.
func wantedEndpoints(ctx context.Context, p *rig.Run, hosts ...string) map[string]string {
	p.Helper()
	services := p.Services(ctx)
	if len(services) != len(hosts) {
		p.Fatalf("there are %d Services of caches, want %d", len(services), len(hosts))
	}
	endpoints := map[string]string{}
	for _, host := range hosts {
		scheme := "http"
		if cache := cachetest.Cache(host); cache.HTTP == nil {
			scheme = "https" // the default
		}
		endpoints[host] = fmt.Sprintf("%s://%s:5000", scheme, services[host].Spec.ClusterIP)
	}
	return endpoints
}

// everything returns a description of what the extension has deployed for the shoot, and what its
// webhook writes into the OperatingSystemConfigs. If two results are equal, no cache changed in
// between, and nodes get the same files and units.
func everything(ctx context.Context, p *rig.Run) string {
	p.Helper()
	state := []string{p.Identities(ctx, p.Session.Shoot), p.StateOfCaches(ctx)}
	resources := &resourcesv1alpha1.ManagedResourceList{}
	p.Check(p.Session.Seed.List(ctx, resources, client.InNamespace(p.Session.Namespace())))
	for _, resource := range resources.Items {
		if strings.HasPrefix(resource.Name, v1alpha3.ManagedResourceCaches) || resource.Name == v1alpha3.ManagedResourceCleaner {
			state = append(state, fmt.Sprintf("ManagedResource %s %s generation %d", resource.Name, resource.UID, resource.Generation))
		}
	}
	return strings.Join(append(state, configs(ctx, p)...), "\n")
}

// configs returns each OperatingSystemConfig of the shoot twice as JSON: as stored, and as the
// webhook would change it now, according to a dry run of an update.
func configs(ctx context.Context, p *rig.Run) []string {
	p.Helper()
	list := &extensionsv1alpha1.OperatingSystemConfigList{}
	p.Check(p.Session.Seed.List(ctx, list, client.InNamespace(p.Session.Namespace())))
	found := false
	var state []string
	for i := range list.Items {
		config := &list.Items[i]
		stored, err := json.Marshal(config.Spec)
		p.Check(err)
		metav1.SetMetaDataAnnotation(&config.ObjectMeta, "e2e", "dry-run")
		p.Check(p.Session.Seed.Update(ctx, config, client.DryRunAll))
		changed, err := json.Marshal(config.Spec)
		p.Check(err)
		found = found || slices.ContainsFunc(config.Spec.Units, func(unit extensionsv1alpha1.Unit) bool { return unit.Name == nodeconfig.UnitName })
		state = append(state, fmt.Sprintf("%s: %s\nwith the webhook: %s", config.Name, stored, changed))
	}
	if !found {
		p.Fatalf("none of %d OperatingSystemConfigs has the unit %s, so this proves nothing", len(list.Items), nodeconfig.UnitName)
	}
	return state
}

// proveSame proves that the function everything returns the same as before.
func proveSame(ctx context.Context, p *rig.Run, before string) {
	p.Helper()
	if after := everything(ctx, p); after != before {
		p.Fatalf("caches or OperatingSystemConfigs changed:\nbefore:\n%s\nafter:\n%s", before, after)
	}
}
