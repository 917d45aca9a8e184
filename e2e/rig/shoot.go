//go:build e2e

package rig

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	v1beta1helper "github.com/gardener/gardener/pkg/api/core/v1beta1/helper"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	"github.com/gardener/gardener/pkg/utils/kubernetes/health"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/cachetest"
	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/kind/gardener"
	"github.com/gardener-extensions/registry-cache/kind/gardenlet"
)

// AppliedTimeout bounds the time from a reconciliation until the script on every worker has applied
// the changes.
const AppliedTimeout = 60 * time.Second

// pendingPods returns descriptions of the caches' pods that do not run. Each description begins
// with "; ".
func (p *Run) pendingPods(ctx context.Context) string {
	pods := &corev1.PodList{}
	// Ignore the error: the pods only add detail.
	_ = p.Session.Shoot.List(ctx, pods, client.InNamespace(metav1.NamespaceSystem), client.HasLabels{v1alpha3.LabelUpstreamHost})
	var states string
	for _, pod := range pods.Items {
		if pod.Status.Phase != corev1.PodRunning {
			states += fmt.Sprintf("; pod %s: %s", pod.Name, PodState(&pod))
		}
	}
	return states
}

// Reconcile makes gardenlet reconcile the shoot with caches for exactly these upstreams.
func Reconcile(ctx context.Context, p *Run, hosts ...string) error {
	return ReconcileConfig(ctx, p, PlainCaches(hosts...)...)
}

// ReconcileConfig makes gardenlet reconcile the shoot with exactly these caches.
func ReconcileConfig(ctx context.Context, p *Run, caches ...v1alpha3.RegistryCache) error {
	return reconcileReferring(ctx, p, nil, caches...)
}

// reconcileReferring is like ReconcileConfig, but the caches can refer to Secrets.
func reconcileReferring(ctx context.Context, p *Run, refer References, caches ...v1alpha3.RegistryCache) error {
	shoot, err := p.Session.ShootWith(refer, caches...)
	if err != nil {
		return err
	}
	if err := p.Session.Testbed.Gardenlet.Reconcile(ctx, shoot); err != nil {
		return fmt.Errorf("reconcile the shoot with caches for %v: %w", Upstreams(caches), err)
	}
	return nil
}

// PlainCaches returns a cache with defaults for each upstream.
func PlainCaches(hosts ...string) []v1alpha3.RegistryCache {
	var caches []v1alpha3.RegistryCache
	for _, host := range hosts {
		caches = append(caches, cachetest.Cache(host))
	}
	return caches
}

// Upstreams returns the upstream of each cache.
func Upstreams(caches []v1alpha3.RegistryCache) []string {
	var names []string
	for _, cache := range caches {
		names = append(names, cache.Upstream)
	}
	return names
}

// Cached returns the function of a step that configures caches for exactly these upstreams, and
// waits until every worker pulls through them. The step is quick if the shoot is already in that
// state.
func Cached(hosts ...string) func(context.Context, *Run) {
	return Configured(PlainCaches(hosts...)...)
}

// Configured is like Cached, but the caches can set other fields as well.
func Configured(caches ...v1alpha3.RegistryCache) func(context.Context, *Run) {
	return func(ctx context.Context, p *Run) {
		p.Helper()
		p.Check(UndoLeftovers(ctx, p))
		// A failed scenario may have left a state that only a reconciliation fixes.
		if p.Session.Disturbed.Swap(false) || !p.settled(ctx, caches...) {
			p.Check(ReconcileConfig(ctx, p, caches...))
		}
		p.awaitUse(ctx, caches...)
	}
}

// settled reports whether the last operation of gardenlet and of the extension succeeded with
// exactly these caches. Without caches it returns false, because then there is no Extension.
func (p *Run) settled(ctx context.Context, caches ...v1alpha3.RegistryCache) bool {
	p.Helper()
	if len(caches) == 0 {
		return false
	}
	shoot, err := p.Session.ShootWith(nil, caches...)
	p.Check(err)
	settled, err := p.Session.Testbed.Gardenlet.Settled(ctx, shoot)
	p.Check(err)
	if !settled {
		return false
	}
	extension, err := GetExtension(ctx, p)
	p.Check(client.IgnoreNotFound(err))
	return err == nil && extension.DeletionTimestamp == nil && extension.Status.ObservedGeneration == extension.Generation &&
		StateOf(extension) == gardencorev1beta1.LastOperationStateSucceeded
}

// Configure makes gardenlet reconcile the shoot with exactly these caches, which may refer to
// Secrets, and waits until they run and every worker pulls through them.
func (p *Run) Configure(ctx context.Context, refer References, caches ...v1alpha3.RegistryCache) {
	p.Helper()
	p.Check(reconcileReferring(ctx, p, refer, caches...))
	p.awaitUse(ctx, caches...)
}

// awaitUse waits until exactly these caches run and every worker pulls through them.
func (p *Run) awaitUse(ctx context.Context, caches ...v1alpha3.RegistryCache) {
	p.Helper()
	p.AwaitCaches(ctx, Upstreams(caches)...)
	p.AwaitMirrors(ctx, Upstreams(caches)...)
}

// AwaitCaches waits until exactly these upstreams have a cache in the shoot and each cache is
// rolled out. While a changed cache restarts, nodes pull directly.
func (p *Run) AwaitCaches(ctx context.Context, hosts ...string) {
	p.Helper()
	if len(hosts) > 0 {
		// If no endpoint has changed, the Extension can be Succeeded before the caches are applied.
		// gardenlet's flow has then ended and no longer requeues pending deletions, so do it here.
		stop := gardener.RequeueDeletions(ctx, p.Session.Seed, p.Session.Namespace())
		defer stop()
		p.Await(ctx, "the caches' ManagedResource is applied", AppliedTimeout, func(ctx context.Context) (bool, string, error) {
			resource := &resourcesv1alpha1.ManagedResource{}
			err := p.Session.Seed.Get(ctx, client.ObjectKey{Namespace: p.Session.Namespace(), Name: v1alpha3.ManagedResourceCaches}, resource)
			if err != nil {
				return false, "", err
			}
			pending := health.CheckManagedResourceApplied(resource)
			return pending == nil, fmt.Sprint(pending), nil
		})
	}
	p.Await(ctx, fmt.Sprintf("the caches of %v are rolled out", hosts), AppliedTimeout, func(ctx context.Context) (bool, string, error) {
		sets := &appsv1.StatefulSetList{}
		err := p.Session.Shoot.List(ctx, sets, client.InNamespace(metav1.NamespaceSystem), client.HasLabels{v1alpha3.LabelUpstreamHost})
		state := fmt.Sprintf("%d StatefulSets", len(sets.Items))
		if pending := cachetest.RolledOut(sets.Items); pending != nil {
			return false, fmt.Sprintf("%s; %s%s", state, strings.ReplaceAll(pending.Error(), "\n", "; "), p.pendingPods(ctx)), err
		}
		return len(sets.Items) == len(hosts), state, err
	})
}

// Reconcile makes gardenlet reconcile the shoot with caches for exactly these upstreams.
func (p *Run) Reconcile(ctx context.Context, hosts ...string) {
	p.Helper()
	p.Check(Reconcile(ctx, p, hosts...))
}

// AwaitMirrors waits until every worker has a hosts.toml with the right endpoint for these
// upstreams only, and until the endpoints answer the worker. After the pod of a Service has
// changed, kube-proxy needs a moment to update the node. Until then the node pulls directly.
func (p *Run) AwaitMirrors(ctx context.Context, hosts ...string) {
	p.Helper()
	var endpoints map[string]string
	if len(hosts) > 0 {
		endpoints = p.Endpoints(ctx)
	}
	looked := sets.List(sets.New(Alpha, Beta, Gamma).Insert(hosts...))
	p.Check(AwaitEvery(ctx, NodeInterval, fmt.Sprintf("every worker has a hosts.toml for each of %v, and the endpoints answer", hosts), AppliedTimeout,
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

// NoticedTimeout bounds the time from the failure of a cache until every worker pulls directly: ten
// seconds, and two to look at the workers.
const NoticedTimeout = 12 * time.Second

// wrongMirror describes the worker's first hosts.toml that is not as it should be, or returns "".
func wrongMirror(ctx context.Context, worker *cluster.Node, hosts []string, endpoints map[string]string) (string, error) {
	contents, err := readHosts(ctx, worker, hosts)
	if err != nil {
		return "", err
	}
	for i, host := range hosts {
		endpoint, want := endpoints[host]
		if want != strings.Contains(contents[i], `"`+endpoint+`"`) || want == IsAbsent(contents[i]) {
			return fmt.Sprintf("%s of %s: %s", host, worker.Name(), contents[i]), nil
		}
	}
	return "", nil
}

// silentEndpoint returns an error text for the first endpoint that does not answer the worker, or
// an empty string. Certificates are not verified.
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

// Extension returns the Extension in the shoot's namespace in the seed.
func (p *Run) Extension(ctx context.Context) *extensionsv1alpha1.Extension {
	p.Helper()
	return must(GetExtension(ctx, p))(p)
}

// GetExtension is like Run.Extension, but returns an error instead of failing the scenario.
func GetExtension(ctx context.Context, p *Run) (*extensionsv1alpha1.Extension, error) {
	extension := &extensionsv1alpha1.Extension{}
	err := p.Session.Seed.Get(ctx, client.ObjectKey{Namespace: p.Session.Namespace(), Name: v1alpha3.ExtensionType}, extension)
	if err != nil {
		return nil, fmt.Errorf("get the Extension: %w", err)
	}
	return extension, nil
}

// Status returns the status of the caches in the Extension.
func (p *Run) Status(ctx context.Context) *v1alpha3.RegistryStatus {
	p.Helper()
	extension := p.Extension(ctx)
	if extension.Status.ProviderStatus == nil {
		p.Fatalf("the Extension has no providerStatus")
	}
	return must(v1alpha3.DecodeStatus(extension.Status.ProviderStatus.Raw))(p)
}

// Endpoints maps each upstream to its cache's endpoint, according to the Extension's status.
func (p *Run) Endpoints(ctx context.Context) map[string]string {
	p.Helper()
	endpoints := map[string]string{}
	for _, cache := range p.Status(ctx).Caches {
		endpoints[cache.Upstream] = cache.Endpoint
	}
	return endpoints
}

// Services maps each upstream to the Service of its cache in the shoot.
func (p *Run) Services(ctx context.Context) map[string]corev1.Service {
	p.Helper()
	list := &corev1.ServiceList{}
	p.Check(p.Session.Shoot.List(ctx, list, client.InNamespace(metav1.NamespaceSystem), client.HasLabels{v1alpha3.LabelUpstreamHost}))
	services := map[string]corev1.Service{}
	for _, service := range list.Items {
		if upstream := service.Annotations[v1alpha3.AnnotationUpstream]; upstream != "" {
			services[upstream] = service
		}
	}
	return services
}

// References are the Shoot's spec.resources: they map the names that caches use to the names of
// Secrets in the garden.
type References map[string]string

// ShootWith returns the session's shoot with these caches and references.
func (s *Session) ShootWith(refer References, caches ...v1alpha3.RegistryCache) (*gardencorev1beta1.Shoot, error) {
	named, err := cachetest.ShootWith(v1alpha3.RegistryConfig{Caches: caches})
	if err != nil {
		return nil, err
	}
	shoot := gardenlet.NewShoot(s.Testbed.Gardenlet.Name, named.Spec.Extensions...)
	for name, secret := range refer {
		shoot = gardenlet.WithSecret(shoot, name, secret)
	}
	return shoot, nil
}

// ExtensionNamespace returns the namespace of the seed in which the extension runs. In a testbed
// with a garden, its name is generated.
func (p *Run) ExtensionNamespace(ctx context.Context) string {
	p.Helper()
	return must(p.Session.Testbed.ExtensionNamespace(ctx))(p)
}

// Namespace returns the namespace of the session's shoot in the seed.
func (s *Session) Namespace() string { return gardenlet.Namespace(s.Testbed.Gardenlet.Name) }

// Secret creates an immutable Secret in the garden, deletes it afterwards, and returns its name.
// change may be nil.
func (p *Run) Secret(ctx context.Context, data map[string][]byte, change func(*corev1.Secret)) string {
	p.Helper()
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: gardenlet.ProjectNamespace, Name: "e2e-" + strings.ToLower(rand.Text()[:10])},
		Type:       corev1.SecretTypeOpaque, Immutable: ptr.To(true), Data: data,
	}
	if change != nil {
		change(secret)
	}
	garden := p.Session.Testbed.Gardenlet.Garden
	p.Check(garden.Create(ctx, secret))
	p.Afterwards(ctx, func(ctx context.Context) error { return client.IgnoreNotFound(garden.Delete(ctx, secret)) })
	return secret.Name
}

// AwaitCondition waits until the Extension's condition CachesHealthy has the status and no error
// code, and its message begins with the text and contains all of the words. The last operation must
// have succeeded as well.
func (p *Run) AwaitCondition(ctx context.Context, want gardencorev1beta1.ConditionStatus, begins string, words ...string) {
	p.Helper()
	p.Await(ctx, fmt.Sprintf("condition %s is %s", v1alpha3.ConditionCachesHealthy, want), time.Minute, func(ctx context.Context) (bool, string, error) {
		extension, err := GetExtension(ctx, p)
		if err != nil {
			return false, "", err
		}
		if state := StateOf(extension); state != gardencorev1beta1.LastOperationStateSucceeded {
			return false, fmt.Sprintf("the Extension is %s", state), nil
		}
		condition := v1beta1helper.GetCondition(extension.Status.Conditions, v1alpha3.ConditionCachesHealthy)
		if condition == nil {
			return false, "there is no condition", nil
		}
		missing := slices.DeleteFunc(slices.Clone(words), func(word string) bool { return strings.Contains(condition.Message, word) })
		return condition.Status == want && strings.HasPrefix(condition.Message, begins) && len(missing) == 0 && len(condition.Codes) == 0,
			fmt.Sprintf("%s, codes %v, %q, which lacks %q", condition.Status, condition.Codes, condition.Message, missing), nil
	})
}
