package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	vpaautoscalingv1 "k8s.io/autoscaler/vertical-pod-autoscaler/pkg/apis/autoscaling.k8s.io/v1"
	clienttesting "k8s.io/client-go/testing"
	testclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	"github.com/gardener/gardener/pkg/resourcemanager/controller/managedresource"
	"github.com/gardener/gardener/pkg/utils/secrets"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/charts"
)

const (
	namespace = "shoot--local--local"
	alpha     = "alpha.upstream.test"
	beta      = "beta.upstream.test"
)

// scheme is used by both clusters. It contains few types, because each slows down the creation of a
// fake client.
var (
	scheme = runtime.NewScheme()
	codecs = serializer.NewCodecFactory(scheme)
)

func TestMain(m *testing.M) {
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, appsv1.AddToScheme, networkingv1.AddToScheme, policyv1.AddToScheme, autoscalingv1.AddToScheme,
		vpaautoscalingv1.AddToScheme, extensionsv1alpha1.AddToScheme, resourcesv1alpha1.AddToScheme,
	} {
		utilruntime.Must(add(scheme))
	}
	secrets.GenerateKey = secrets.FakeGenerateKey // a real key takes a second
	m.Run()
}

// landscape is a seed and a shoot with fake clients. Whenever a ManagedResource is written and the
// shoot is not hibernated, it runs the reconciler of gardener-resource-manager, and acts as the
// controllers of the shoot: it assigns cluster IPs and runs the cleaner on ready nodes. The field
// log contains the writes to the seed, in order.
type landscape struct {
	seed, shoot client.WithWatch
	unwatched   client.WithWatch // the client of gardener-resource-manager for the seed, whose writes are not logged
	manager     *managedresource.Reconciler
	actuator    *Actuator
	log         []string
	// noCleaner, if set, is why the cleaner cannot start on any node.
	noCleaner string
	// applyError, if set, is why the objects of refusedKind cannot be applied.
	applyError, refusedKind string
	// progressing, if set, is when the rollout of the caches began.
	progressing time.Time
	// finalizer, if set, is added to every ManagedResource that is written.
	finalizer string
	// behind, if set, keeps observedGeneration of a written ManagedResource outdated.
	behind bool
	// missed are the ManagedResources that were written while the shoot was hibernated.
	missed map[string]bool
	// away makes gardener-resource-manager miss writes, as if it were behind.
	away bool
	// awake makes gardener-resource-manager run while the shoot is hibernated, as gardenlet does
	// before a migration.
	awake bool
	// fixed makes the shoot refuse to expand claims.
	fixed bool
	// guarded makes the shoot refuse to delete claims, as a policy of its owner would.
	guarded bool
	// cleaned, if set, is called for each node that was cleaned, with the arguments of the cleaner.
	cleaned func(node string, args []string)
	nextIP  int
}

func newLandscape(t *testing.T, objects ...client.Object) *landscape {
	t.Helper()
	l := &landscape{missed: map[string]bool{}}
	l.shoot = fake.NewClientBuilder().WithScheme(scheme).WithObjectTracker(newTracker()).WithObjects(worker("worker-1", true)).
		WithInterceptorFuncs(interceptor.Funcs{Patch: l.patchInShoot, Delete: l.deleteInShoot, DeleteAllOf: l.deleteAllInShoot}).Build()
	l.newSeed(objects...)
	w := &l.actuator.waits
	w.limit, w.patience, w.interval = time.Minute, 50*time.Millisecond, time.Millisecond
	return l
}

// newTracker returns a store without managed fields, which take half of the time of a write.
func newTracker() clienttesting.ObjectTracker {
	return clienttesting.NewObjectTracker(scheme, codecs.UniversalDecoder())
}

// newSeed replaces the seed with one that contains only these objects, and the Actuator.
func (l *landscape) newSeed(objects ...client.Object) {
	l.unwatched = fake.NewClientBuilder().
		WithScheme(scheme).
		WithObjectTracker(newTracker()).
		WithStatusSubresource(&extensionsv1alpha1.Extension{}, &resourcesv1alpha1.ManagedResource{}).
		WithObjects(objects...).
		Build()
	l.seed = interceptor.NewClient(l.unwatched, l.interceptors())
	l.manager = l.newManager()
	l.restart()
}

// restart acts as a restart of the Actuator's process.
func (l *landscape) restart() {
	l.actuator = NewActuator(l.seed,
		func(context.Context, string) (client.Client, error) { return l.shoot, nil },
		charts.Images{RegistryCache: "cache:v1", RegistryCleaner: "cleaner:v1"})
}

func (l *landscape) interceptors() interceptor.Funcs {
	return interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			obj.SetCreationTimestamp(metav1.Now())
			if mr, ok := obj.(*resourcesv1alpha1.ManagedResource); ok {
				mr.Generation = 1
			}
			if err := c.Create(ctx, obj, opts...); err != nil {
				return err
			}
			return l.onWrite(ctx, obj)
		},
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			if err := countGeneration(ctx, c, obj); err != nil {
				return err
			}
			if err := c.Update(ctx, obj, opts...); err != nil {
				return err
			}
			return l.onWrite(ctx, obj)
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			mr, ok := obj.(*resourcesv1alpha1.ManagedResource)
			if !ok {
				return c.Delete(ctx, obj, opts...)
			}
			l.note("delete", mr.Name)
			return l.onDelete(ctx, mr, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if mr, ok := obj.(*resourcesv1alpha1.ManagedResource); ok && mr.Spec.KeepObjects != nil {
				l.log = append(l.log, fmt.Sprintf("patch %s keepObjects=%t", mr.Name, *mr.Spec.KeepObjects))
			}
			if err := c.Patch(ctx, obj, patch, opts...); err != nil || obj.GetAnnotations()["gardener.cloud/operation"] == "" {
				return err
			}
			return l.onWrite(ctx, obj)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			if ex, ok := obj.(*extensionsv1alpha1.Extension); ok {
				l.log = append(l.log, "status "+fmt.Sprint(upstreamsOf(ex)))
			}
			return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
		},
	}
}

// later advances the time for the actuator.
func (l *landscape) later(d time.Duration) {
	l.actuator.clock = testclock.NewFakeClock(l.actuator.clock.Now().Add(d))
}

// note logs an operation on any ManagedResource except the one for monitoring.
func (l *landscape) note(verb, name string) {
	if name != monitoringName {
		l.log = append(l.log, verb+" "+name)
	}
}

// resync acts as gardener-resource-manager for an unchanged ManagedResource.
func (l *landscape) resync(t *testing.T, name string) {
	t.Helper()
	mr, err := l.actuator.managedResource(t.Context(), namespace, name)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.onWrite(t.Context(), mr); err != nil {
		t.Fatal(err)
	}
}

func (l *landscape) extension(t *testing.T) *extensionsv1alpha1.Extension {
	t.Helper()
	ex := &extensionsv1alpha1.Extension{}
	if err := l.seed.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: v1alpha3.ExtensionType}, ex); err != nil {
		t.Fatal(err)
	}
	return ex
}

func (l *landscape) exists(t *testing.T, name string) bool {
	t.Helper()
	err := l.seed.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, &resourcesv1alpha1.ManagedResource{})
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	return err == nil
}

func (l *landscape) reconcile(t *testing.T) error {
	t.Helper()
	return l.actuator.Reconcile(t.Context(), logr.Discard(), l.extension(t))
}

func (l *landscape) delete(t *testing.T) error {
	t.Helper()
	return l.actuator.Delete(t.Context(), logr.Discard(), l.extension(t))
}

func upstreamsOf(ex *extensionsv1alpha1.Extension) []string {
	if ex.Status.ProviderStatus == nil {
		return nil
	}
	r, err := recordOf(ex)
	if err != nil {
		return []string{err.Error()}
	}
	upstreams := []string{}
	for _, cache := range r.status.Caches {
		upstreams = append(upstreams, cache.Upstream)
	}
	return upstreams
}

// newExtension returns an Extension that configures caches for the wanted upstreams. Its status
// lists the running upstreams. If running is nil, there is no status. The caches serve plain HTTP.
func newExtension(wanted, running []string) *extensionsv1alpha1.Extension {
	config := v1alpha3.RegistryConfig{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha3.SchemeGroupVersion.String(), Kind: "RegistryConfig"}}
	for _, upstream := range wanted {
		config.Caches = append(config.Caches, v1alpha3.RegistryCache{Upstream: upstream, HTTP: &v1alpha3.HTTP{}})
	}
	ex := rawExtension(encode(config))
	if running != nil {
		var caches []v1alpha3.RegistryCacheStatus
		for _, upstream := range running {
			caches = append(caches, v1alpha3.RegistryCacheStatus{Upstream: upstream, Endpoint: "http://10.1.1.1:5000", RemoteURL: "https://" + upstream})
		}
		ex.Status.ProviderStatus = &runtime.RawExtension{Raw: encode(newStatus(caches, nil))}
	}
	return ex
}

func rawExtension(config []byte) *extensionsv1alpha1.Extension {
	return &extensionsv1alpha1.Extension{
		ObjectMeta: metav1.ObjectMeta{Name: v1alpha3.ExtensionType, Namespace: namespace},
		Spec: extensionsv1alpha1.ExtensionSpec{DefaultSpec: extensionsv1alpha1.DefaultSpec{
			Type:           v1alpha3.ExtensionType,
			ProviderConfig: &runtime.RawExtension{Raw: config},
		}},
	}
}

func encode(object any) []byte {
	raw, err := json.Marshal(object)
	if err != nil {
		panic(err)
	}
	return raw
}

// cluster returns the Cluster of a shoot with the changes.
func cluster(changes ...func(*gardencorev1beta1.Shoot)) *extensionsv1alpha1.Cluster {
	shoot := &gardencorev1beta1.Shoot{
		TypeMeta:   metav1.TypeMeta{APIVersion: gardencorev1beta1.SchemeGroupVersion.String(), Kind: "Shoot"},
		ObjectMeta: metav1.ObjectMeta{Name: "local", Namespace: "garden-local"},
		Spec: gardencorev1beta1.ShootSpec{
			Kubernetes: gardencorev1beta1.Kubernetes{Version: "1.34.1"},
			Provider:   gardencorev1beta1.Provider{Workers: []gardencorev1beta1.Worker{{Name: "local"}}},
			Networking: &gardencorev1beta1.Networking{Pods: ptr.To("10.1.0.0/16"), Services: ptr.To("10.0.0.0/16"), Nodes: ptr.To("10.2.0.0/16")},
		},
	}
	for _, change := range changes {
		change(shoot)
	}
	return &extensionsv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: namespace},
		Spec:       extensionsv1alpha1.ClusterSpec{Shoot: runtime.RawExtension{Raw: encode(shoot)}},
	}
}

func deleting(shoot *gardencorev1beta1.Shoot) {
	now := metav1.Now()
	shoot.DeletionTimestamp = &now
}

// hibernating enables hibernation in the spec of a shoot. Its nodes still run.
func hibernating(shoot *gardencorev1beta1.Shoot) {
	enabled := true
	shoot.Spec.Hibernation = &gardencorev1beta1.Hibernation{Enabled: &enabled}
}

func hibernated(shoot *gardencorev1beta1.Shoot) {
	hibernating(shoot)
	shoot.Status.IsHibernated = true
}

// managedResource returns an existing ManagedResource. Finalizers keep it when it is deleted.
func managedResource(name string, finalizers ...string) *resourcesv1alpha1.ManagedResource {
	return &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Finalizers: finalizers}}
}
