package controller

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	extensionscontroller "github.com/gardener/gardener/extensions/pkg/controller"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	"github.com/gardener/gardener/pkg/utils/managedresources"
	"github.com/gardener/gardener/pkg/utils/managedresources/builder"
	appsv1 "k8s.io/api/apps/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	vpaautoscalingv1 "k8s.io/autoscaler/vertical-pod-autoscaler/pkg/apis/autoscaling.k8s.io/v1"
	kubernetesscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/controller/cache"
	"github.com/gardener-extensions/registry-cache/controller/monitoring"
)

// newOriginal returns a landscape as gardener-extension-registry-cache leaves it, with caches of
// alpha and beta. It contains reconstructions of the relevant objects.
func newOriginal(t *testing.T) *landscape {
	t.Helper()
	ex := newExtension([]string{alpha, beta}, []string{alpha, beta})
	ex.Status.ProviderStatus.Raw = []byte(strings.Replace(string(ex.Status.ProviderStatus.Raw), `,"caBundle":""`, "", 1))
	// Our extension ran before, with another StorageClass.
	ex.Status.State = &runtime.RawExtension{Raw: encode(v1alpha3.State{RegistryConfig: &v1alpha3.RegistryConfig{
		TypeMeta: typeMeta("RegistryConfig"),
		Caches:   []v1alpha3.RegistryCache{{Upstream: alpha, Volume: &v1alpha3.Volume{StorageClassName: new("other")}}, {Upstream: "gamma.upstream.test"}},
	}})}
	l := newLandscape(t, ex, cluster())
	var services, objects []client.Object
	for _, upstream := range []string{alpha, beta} {
		config := &v1alpha3.RegistryConfig{Caches: []v1alpha3.RegistryCache{{Upstream: upstream, HTTP: &v1alpha3.HTTP{}}}}
		v1alpha3.SetDefaults(config)
		all, err := cache.Objects(config.Caches[0], idOf(upstream), cache.Shoot{Image: "original", VerticalPodAutoscaler: true}, cache.Secrets{})
		if err != nil {
			t.Fatal(err)
		}
		for _, object := range all {
			switch o := object.(type) {
			case *appsv1.StatefulSet:
				o.Spec.PodManagementPolicy = appsv1.OrderedReadyPodManagement
				objects = append(objects, o)
			case *vpaautoscalingv1.VerticalPodAutoscaler:
				o.Labels = nil
				objects = append(objects, o)
			}
		}
		of, err := cache.Services(config.Caches[0], idOf(upstream), cache.Shoot{KubernetesVersion: "1.34.2"})
		if err != nil {
			t.Fatal(err)
		}
		services = append(services, of...)
	}
	objects = append(objects, &networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "gardener.cloud--allow-registry-cache"},
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{"app.kubernetes.io/name": "registry-cache"}},
		},
	})
	for name, list := range map[string][]client.Object{servicesName: services, cachesName: objects} {
		err := apply(t.Context(), l.seed, namespace, name, shootEncoder, list, func(c client.Client) *builder.ManagedResource {
			return managedresources.NewForShoot(c, namespace, name, origin, false).DeletePersistentVolumeClaims(name == cachesName)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return l
}

// TestTakeover checks that the first reconciliation leaves the caches of
// gardener-extension-registry-cache alone, that the second changes them in place, and that
// NetworkPolicies select their pods at any time.
func TestTakeover(t *testing.T) {
	l := newOriginal(t)
	services := l.services(t)
	l.cleaned = func(_ string, args []string) { t.Errorf("the nodes are cleaned: %q", args) }
	l.progressing = metav1.Now().Time // nothing waits for pods
	const policy = "policy/gardener.cloud--allow-registry-cache"
	for i, image := range []string{"original", "cache:v1", "cache:v1"} {
		l.reconciled(t)
		list, sets := l.inShoot(t), &appsv1.StatefulSetList{}
		for _, wanted := range []string{"policy/registry-alpha-upstream-test", "policy/registry-beta-upstream-test"} {
			if !slices.Contains(list, wanted) {
				t.Errorf("reconciliation %d: no %s in %q", i, wanted, list)
			}
		}
		if is := slices.Contains(list, policy); is != (i == 0) {
			t.Errorf("reconciliation %d: the policy of the original is there: %v", i, is)
		}
		if err := l.shoot.List(t.Context(), sets); err != nil {
			t.Fatal(err)
		}
		for _, set := range sets.Items {
			is := set.Spec.Template.Spec.Containers[0].Image
			if set.Spec.PodManagementPolicy != appsv1.OrderedReadyPodManagement || is != image {
				t.Errorf("reconciliation %d: %s has policy %s and image %s", i, set.Name, set.Spec.PodManagementPolicy, is)
			}
		}
		if len(sets.Items) != 2 {
			t.Errorf("reconciliation %d: %d StatefulSets", i, len(sets.Items))
		}
		if status, err := v1alpha3.DecodeStatus(l.extension(t).Status.ProviderStatus.Raw); err != nil || len(status.Caches) != 2 || status.CABundle == nil {
			t.Errorf("reconciliation %d: status %+v, %v", i, status, err)
		}
	}
	for name, ip := range l.services(t) {
		if services[name] != ip {
			t.Errorf("Service %s has %s, had %s", name, ip, services[name])
		}
	}
}

// TestTakeoverMoves checks that a cache keeps its immutable fields if the control plane moves
// before the second reconciliation.
func TestTakeoverMoves(t *testing.T) {
	l := newOriginal(t)
	l.reconciled(t)
	state, err := v1alpha3.DecodeState(l.extension(t).Status.State)
	if err != nil || len(state.Running) != 2 || !state.Running[0].OrderedReady {
		t.Errorf("state = %+v, %v", state, err)
	}
}

// TestTakeoverOfMonitoring checks objects that gardener-extension-registry-cache has created in the
// seed without a ManagedResource: they are taken over, or deleted if the extension is disabled
// before it reconciles, or if the Shoot is now for testing.
func TestTakeoverOfMonitoring(t *testing.T) {
	forTesting := func(s *gardencorev1beta1.Shoot) { s.Spec.Purpose = new(gardencorev1beta1.ShootPurposeTesting) }
	for name, test := range map[string]struct {
		do    func(*testing.T, *landscape)
		taken bool
	}{
		"reconciled": {func(t *testing.T, l *landscape) { l.reconciled(t) }, true},
		"disabled": {func(t *testing.T, l *landscape) {
			if err := l.delete(t); err != nil {
				t.Fatal(err)
			}
		}, false},
		"for testing": {func(t *testing.T, l *landscape) {
			l.changeShoot(t, forTesting)
			l.reconciled(t)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			l := newOriginal(t)
			for _, object := range monitoring.References(namespace) {
				if err := l.seed.Create(t.Context(), object); err != nil {
					t.Fatal(err)
				}
			}
			test.do(t, l)
			if l.exists(t, monitoringName) != test.taken {
				t.Errorf("a ManagedResource takes over the monitoring: %t", !test.taken)
			}
			for _, object := range monitoring.References(namespace) {
				if err := l.seed.Get(t.Context(), client.ObjectKeyFromObject(object), object); apierrors.IsNotFound(err) == test.taken {
					t.Errorf("%s: %v", object.GetName(), err)
				}
			}
		})
	}
}

// TestTakeoverWithRemoval checks that the cleaner gets the endpoint of a removed cache, by which it
// finds the hosts.toml of gardener-node-agent.
func TestTakeoverWithRemoval(t *testing.T) {
	l := newOriginal(t)
	l.configure(t, func(c *v1alpha3.RegistryConfig) { c.Caches = c.Caches[1:] })
	var args []string
	l.cleaned = func(_ string, given []string) { args = given }
	l.reconciled(t)
	if want := "--endpoint=http://10.1.1.1:5000"; !slices.Contains(args, want) {
		t.Errorf("the cleaner gets %q, want %s", args, want)
	}
	if list := l.inShoot(t); slices.Contains(list, "claim/"+claimOf(alpha).Name) {
		t.Errorf("left: %q", list)
	}
}

// during sets gardenlet's operation for the next reconciliations.
func (l *landscape) during(t *testing.T, operation string) {
	t.Helper()
	ex := l.extension(t)
	ex.Annotations = map[string]string{"gardener.cloud/timestamp": operation}
	if err := l.seed.Update(t.Context(), ex); err != nil {
		t.Fatal(err)
	}
}

func (l *landscape) assertImage(t *testing.T, upstream, want, when string) {
	t.Helper()
	set := &appsv1.StatefulSet{}
	if err := l.shoot.Get(t.Context(), client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: idOf(upstream).Name}, set); err != nil {
		t.Fatal(err)
	}
	if got := set.Spec.Template.Spec.Containers[0].Image; got != want {
		t.Errorf("%s, the cache of %s has image %s, want %s", when, upstream, got, want)
	}
}

// TestTakeoverIsInterrupted checks that an attempt that fails after the nodes were cleaned does not
// count: the next one would change the caches before gardenlet has configured the nodes.
func TestTakeoverIsInterrupted(t *testing.T) {
	l := newOriginal(t)
	l.configure(t, func(c *v1alpha3.RegistryConfig) { c.Caches = c.Caches[1:] })
	l.during(t, "first")
	l.finalizer = "test/stays"
	if err := l.reconcile(t); err == nil || !strings.Contains(err.Error(), cleanerName) {
		t.Fatalf("error = %v, want it to name %s", err, cleanerName)
	}
	l.finalizer = ""
	released := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: cleanerName}}
	if err := l.unwatched.Patch(t.Context(), released, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
		t.Fatal(err)
	}
	l.reconciled(t)
	l.assertImage(t, beta, "original", "after a retry")
}

// TestTakeoverIsRetried checks that a retry of the first reconciliation changes no cache and
// finishes the removal of one, wherever the first attempt has ended.
func TestTakeoverIsRetried(t *testing.T) {
	first := func() (*landscape, *wire) {
		l := newOriginal(t)
		l.configure(t, func(c *v1alpha3.RegistryConfig) { c.Caches = c.Caches[1:] })
		l.during(t, "first")
		return l, l.tap()
	}
	l, w := first()
	l.reconciled(t)
	for i, request := range w.requests {
		write := strings.Contains(request, " write ")
		if !write && i < len(w.requests)-1 {
			continue
		}
		when := fmt.Sprintf("after request %d, %s, was lost", i+1, request)
		l, w := first()
		w.fail = func(number int, done bool) error {
			if number == i+1 && done == write {
				return errLost
			}
			return nil
		}
		_ = l.reconcile(t) // no error if nothing depends on the request
		l.restart()
		l.reconciled(t)
		l.assertImage(t, beta, "original", when)
		l.during(t, "second")
		l.reconciled(t)
		l.assertImage(t, beta, "cache:v1", when)
		l.assertInShoot(t, when, beta)
	}
}

// ofScheme is a client with another scheme, with which Gardener's library decodes manifests.
type ofScheme struct {
	client.Client
	scheme *runtime.Scheme
}

func (c ofScheme) Scheme() *runtime.Scheme { return c.scheme }

// TestVerticalPodAutoscalers checks that VerticalPodAutoscalers in ManagedResources are read,
// although the scheme of the extension's binary lacks their kind.
func TestVerticalPodAutoscalers(t *testing.T) {
	inBinary := runtime.NewScheme()
	types := runtime.NewSchemeBuilder(kubernetesscheme.AddToScheme, extensionscontroller.AddToScheme)
	utilruntime.Must(types.AddToScheme(inBinary))
	autoscaled := func(s *gardencorev1beta1.Shoot) {
		s.Spec.Kubernetes.VerticalPodAutoscaler = &gardencorev1beta1.VerticalPodAutoscaler{Enabled: true}
	}
	for name, l := range map[string]*landscape{
		"takeover": newOriginal(t),
		"addition": newLandscape(t, newExtension([]string{alpha}, nil), cluster()),
	} {
		t.Run(name, func(t *testing.T) {
			l.changeShoot(t, autoscaled)
			l.actuator.client = ofScheme{l.seed, inBinary}
			l.reconciled(t)
			l.configure(t, addFirst(gamma))
			l.reconciled(t)
		})
	}
}
