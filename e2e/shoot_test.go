//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	"github.com/gardener/gardener/pkg/utils/kubernetes/health"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/cluster"
)

// appliedTimeout bounds the time from a finished reconciliation until the script on every worker has done its part.
const appliedTimeout = 60 * time.Second

// reconcile lets gardenlet bring the shoot to the state with exactly these upstreams cached.
func reconcile(ctx context.Context, hosts ...string) error {
	return reconcileConfig(ctx, plainCaches(hosts)...)
}

// reconcileConfig lets gardenlet bring the shoot to the state with exactly these caches; kind.CacheOf makes a plain one.
func reconcileConfig(ctx context.Context, caches ...v1alpha3.RegistryCache) error {
	return reconcileReferring(ctx, nil, caches...)
}

// reconcileReferring is reconcileConfig for caches that refer to Secrets.
func reconcileReferring(ctx context.Context, refer references, caches ...v1alpha3.RegistryCache) error {
	shoot, err := refer.shoot(caches...)
	if err != nil {
		return err
	}
	if err := suite.testbed.Gardenlet().Reconcile(ctx, shoot); err != nil {
		return fmt.Errorf("reconcile the shoot with caches for %v: %w", upstreams(caches), err)
	}
	return nil
}

func plainCaches(hosts []string) []v1alpha3.RegistryCache {
	caches := make([]v1alpha3.RegistryCache, 0, len(hosts))
	for _, host := range hosts {
		caches = append(caches, kind.CacheOf(host))
	}
	return caches
}

func upstreams(caches []v1alpha3.RegistryCache) []string {
	names := make([]string, 0, len(caches))
	for _, cache := range caches {
		names = append(names, cache.Upstream)
	}
	return names
}

// cached returns the step that makes a starting state: exactly these upstreams are cached, and every worker pulls
// through the caches. It is quick when that is so already.
func cached(hosts ...string) func(context.Context, *proof) {
	return configured(plainCaches(hosts)...)
}

// configured returns the step that makes a starting state of caches with fields of their own, see cached.
func configured(caches ...v1alpha3.RegistryCache) func(context.Context, *proof) {
	return func(ctx context.Context, p *proof) {
		p.Helper()
		p.Check(undoLeftovers(ctx))
		// A scenario that failed may have left what only a reconciliation mends.
		if !suite.disturbed.Swap(false) && p.settled(ctx, caches...) {
			p.AwaitUse(ctx, caches...)
			return
		}
		p.Configure(ctx, nil, caches...)
	}
}

// settled says whether the last operation of gardenlet and of the extension brought the shoot to the state with exactly
// these caches. It cannot tell without any: then there is no Extension that says so.
func (p *proof) settled(ctx context.Context, caches ...v1alpha3.RegistryCache) bool {
	p.Helper()
	if len(caches) == 0 {
		return false
	}
	shoot, err := references(nil).shoot(caches...)
	p.Check(err)
	settled, err := suite.testbed.Gardenlet().Settled(ctx, shoot)
	p.Check(err)
	if !settled {
		return false
	}
	extension, err := extension(ctx)
	p.Check(client.IgnoreNotFound(err))
	return err == nil && extension.DeletionTimestamp == nil && extension.Status.ObservedGeneration == extension.Generation &&
		stateOf(extension) == gardencorev1beta1.LastOperationStateSucceeded
}

// Configure lets gardenlet bring the shoot to the state with exactly these caches, which may refer to Secrets, and waits
// until they run and every worker pulls through them.
func (p *proof) Configure(ctx context.Context, refer references, caches ...v1alpha3.RegistryCache) {
	p.Helper()
	p.Check(reconcileReferring(ctx, refer, caches...))
	p.AwaitUse(ctx, caches...)
}

// AwaitUse waits until exactly these caches run and every worker pulls through them.
func (p *proof) AwaitUse(ctx context.Context, caches ...v1alpha3.RegistryCache) {
	p.Helper()
	p.AwaitCaches(ctx, upstreams(caches)...)
	p.AwaitMirrors(ctx, upstreams(caches)...)
}

// AwaitCaches waits until exactly these upstreams have a cache in the shoot and each is rolled out: while a changed one
// starts again, nodes pull directly.
func (p *proof) AwaitCaches(ctx context.Context, hosts ...string) {
	p.Helper()
	if len(hosts) > 0 {
		p.awaitApplied(ctx)
	}
	p.AwaitCachesIn(ctx, suite.shoot, hosts...)
}

// awaitApplied waits until gardener-resource-manager has brought what the extension wants into the shoot. The Extension is
// reconciled before that when the endpoints of the caches stay what they were.
func (p *proof) awaitApplied(ctx context.Context) {
	p.Helper()
	p.Await(ctx, "the caches' ManagedResource is applied", appliedTimeout, func(ctx context.Context) (bool, string, error) {
		resource := &resourcesv1alpha1.ManagedResource{}
		err := suite.seed.Get(ctx, client.ObjectKey{Namespace: shootNamespace, Name: cachesManagedResource}, resource)
		if err != nil {
			return false, "", err
		}
		pending := health.CheckManagedResourceApplied(resource)
		return pending == nil, fmt.Sprint(pending), nil
	})
}

// AwaitCachesIn is AwaitCaches for the cluster of another shoot.
func (p *proof) AwaitCachesIn(ctx context.Context, cluster access, hosts ...string) {
	p.Helper()
	p.Await(ctx, fmt.Sprintf("the caches of %v are rolled out", hosts), appliedTimeout, func(ctx context.Context) (bool, string, error) {
		sets := &appsv1.StatefulSetList{}
		err := cluster.List(ctx, sets, client.InNamespace(metav1.NamespaceSystem), client.HasLabels{upstreamHostLabel})
		ready := len(sets.Items) == len(hosts)
		state := fmt.Sprintf("%d StatefulSets", len(sets.Items))
		for _, set := range sets.Items {
			if progressing, why := health.IsStatefulSetProgressing(&set); progressing {
				ready, state = false, fmt.Sprintf("%s; %s: %s", state, set.Name, why)
			}
			if err := health.CheckStatefulSet(&set); err != nil {
				ready, state = false, fmt.Sprintf("%s; %s: %v", state, set.Name, err)
			}
		}
		return ready, state, err
	})
}

// Reconcile lets gardenlet bring the shoot to the state with exactly these upstreams cached.
func (p *proof) Reconcile(ctx context.Context, hosts ...string) {
	p.Helper()
	p.Check(reconcile(ctx, hosts...))
}

// AwaitMirrors waits until every worker's containerd is told to pull from the endpoints of these upstreams, and for none
// of the others, and until these endpoints answer there: a node learns some time after the API server that the pod behind
// a Service is another one, and until then it pulls directly.
func (p *proof) AwaitMirrors(ctx context.Context, hosts ...string) {
	p.Helper()
	endpoints := map[string]string{}
	if len(hosts) > 0 {
		endpoints = p.Endpoints(ctx)
	}
	looked := sets.List(sets.New(alpha, beta, gamma).Insert(hosts...))
	p.Check(awaitEvery(ctx, nodeInterval, fmt.Sprintf("every worker has a hosts.toml for each of %v, and is answered there", hosts), appliedTimeout,
		func(ctx context.Context) (bool, string, error) {
			for _, worker := range p.Workers() {
				if wrong, err := wrongMirror(ctx, worker, looked, endpoints); wrong != "" || err != nil {
					return false, wrong, err
				}
				if silent := silentEndpoint(ctx, worker, endpoints); silent != "" {
					return false, silent, nil
				}
			}
			return true, "", nil
		}))
}

// wrongMirror returns the first hosts.toml on the worker that is not what the endpoints demand; empty if there is none.
func wrongMirror(ctx context.Context, worker *cluster.Node, hosts []string, endpoints map[string]string) (string, error) {
	var paths []string
	for _, host := range hosts {
		paths = append(paths, hostsPath(host))
	}
	contents, err := readFiles(ctx, worker, paths...)
	if err != nil {
		return "", err
	}
	for i, host := range hosts {
		endpoint, want := endpoints[host]
		if want != strings.Contains(contents[i], `"`+endpoint+`"`) || want == isAbsent(contents[i]) {
			return fmt.Sprintf("%s of %s: %s", host, worker.Name(), contents[i]), nil
		}
	}
	return "", nil
}

// silentEndpoint returns which of the endpoints does not answer the worker, and how; empty if all do. Whom the worker
// trusts is not asked here.
func silentEndpoint(ctx context.Context, worker *cluster.Node, endpoints map[string]string) string {
	if len(endpoints) == 0 {
		return ""
	}
	_, err := worker.Script(ctx, `for endpoint do
  status=$(curl --silent --insecure --max-time 2 --output /dev/null --write-out '%{http_code}' "$endpoint/v2/") || true
  [ "$status" = 200 ] || { echo "$endpoint: $status" >&2; exit 1; }
done`, slices.Sorted(maps.Values(endpoints))...)
	if err != nil {
		return err.Error()
	}
	return ""
}

// Extension returns the Extension in the shoot's namespace of the seed.
func (p *proof) Extension(ctx context.Context) *extensionsv1alpha1.Extension {
	p.Helper()
	extension, err := extension(ctx)
	p.Check(err)
	return extension
}

func extension(ctx context.Context) (*extensionsv1alpha1.Extension, error) {
	extension := &extensionsv1alpha1.Extension{}
	err := suite.seed.Get(ctx, client.ObjectKey{Namespace: shootNamespace, Name: extensionName}, extension)
	if err != nil {
		return nil, fmt.Errorf("get the Extension: %w", err)
	}
	return extension, nil
}

// Endpoints returns the endpoint of each upstream as the Extension's status has it.
func (p *proof) Endpoints(ctx context.Context) map[string]string {
	p.Helper()
	extension := p.Extension(ctx)
	if extension.Status.ProviderStatus == nil {
		p.Fatalf("the Extension has no providerStatus")
	}
	status, err := v1alpha3.DecodeStatus(extension.Status.ProviderStatus.Raw)
	p.Check(err)
	endpoints := map[string]string{}
	for _, cache := range status.Caches {
		endpoints[cache.Upstream] = cache.Endpoint
	}
	return endpoints
}

// Services returns the Services of the caches in the shoot by upstream.
func (p *proof) Services(ctx context.Context) map[string]corev1.Service {
	p.Helper()
	list := &corev1.ServiceList{}
	p.Check(suite.shoot.List(ctx, list, client.InNamespace(metav1.NamespaceSystem), client.HasLabels{upstreamHostLabel}))
	services := map[string]corev1.Service{}
	for _, service := range list.Items {
		if upstream := service.Annotations[v1alpha3.AnnotationUpstream]; upstream != "" {
			services[upstream] = service
		}
	}
	return services
}
