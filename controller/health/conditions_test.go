package health

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	extensionscontroller "github.com/gardener/gardener/extensions/pkg/controller"
	v1beta1helper "github.com/gardener/gardener/pkg/api/core/v1beta1/helper"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"github.com/gardener/gardener/pkg/utils/kubernetes/health/checker"
	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllertest"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

const namespace = "shoot--local--local"

var extensionKey = client.ObjectKey{Namespace: namespace, Name: v1alpha3.ExtensionType}

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	m.Run()
}

// seedWith returns a seed with the Extension of a shoot with one cache. change modifies the Shoot.
func seedWith(t *testing.T, change func(*gardencorev1beta1.Shoot)) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := extensionscontroller.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	raw := func(object any) runtime.RawExtension {
		text, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		return runtime.RawExtension{Raw: text}
	}
	shoot := &gardencorev1beta1.Shoot{TypeMeta: metav1.TypeMeta{APIVersion: gardencorev1beta1.SchemeGroupVersion.String(), Kind: "Shoot"}}
	change(shoot)
	state := raw(v1alpha3.State{RegistryConfig: &v1alpha3.RegistryConfig{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha3.SchemeGroupVersion.String(), Kind: "RegistryConfig"},
		Caches:   []v1alpha3.RegistryCache{cacheOf(alpha, 1)},
	}})
	ex := &extensionsv1alpha1.Extension{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: v1alpha3.ExtensionType}}
	ex.Spec.Type = v1alpha3.ExtensionType
	ex.Status.State = &state
	ex.Status.Conditions = []gardencorev1beta1.Condition{{Type: v1alpha3.ConditionNodesCleaned, Status: gardencorev1beta1.ConditionTrue}}
	cluster := &extensionsv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: namespace}, Spec: extensionsv1alpha1.ClusterSpec{Shoot: raw(shoot)}}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(ex, cluster).WithStatusSubresource(ex).Build()
}

// run starts the library's controller with the check, lets it check the Extension once, and
// returns the conditions of the Extension.
func run(t *testing.T, seed client.WithWatch, shoots func(context.Context, string) (client.Client, error)) []gardencorev1beta1.Condition {
	t.Helper()
	return runWith(t, seed, time.Hour, shoots)
}

func runWith(t *testing.T, seed client.WithWatch, period time.Duration, shoots func(context.Context, string) (client.Client, error)) []gardencorev1beta1.Condition {
	t.Helper()
	informer := start(t, seed, period, newActuator(seed, shoots))
	written, err := seed.Watch(t.Context(), &extensionsv1alpha1.ExtensionList{})
	if err != nil {
		t.Fatal(err)
	}
	defer written.Stop()
	ex := &extensionsv1alpha1.Extension{}
	if err := seed.Get(t.Context(), extensionKey, ex); err != nil {
		t.Fatal(err)
	}
	for began := time.Now(); time.Since(began) < time.Minute; {
		informer.Add(ex) // lost if the controller does not watch yet
		select {
		case event := <-written.ResultChan():
			return event.Object.(*extensionsv1alpha1.Extension).Status.Conditions
		case <-time.After(50 * time.Millisecond):
		}
	}
	t.Fatal("the controller has written no conditions within a minute")
	return nil
}

// start starts the library's controller until the end of the test, and returns the informer of
// Extensions.
func start(t *testing.T, seed client.WithWatch, period time.Duration, check *actuator) *controllertest.FakeInformer {
	t.Helper()
	informers := &informertest.FakeInformers{Scheme: seed.Scheme()}
	mgr, err := manager.New(&rest.Config{}, manager.Options{
		Scheme:         seed.Scheme(),
		Metrics:        server.Options{BindAddress: "0"},
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return seed.RESTMapper(), nil },
		NewCache:       func(*rest.Config, cache.Options) (cache.Cache, error) { return informers, nil },
		NewClient:      func(*rest.Config, client.Options) (client.Client, error) { return seed, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := register(mgr, period, nil, check); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	<-mgr.Elected()
	informer, err := informers.FakeInformerFor(ctx, &extensionsv1alpha1.Extension{})
	if err != nil {
		t.Fatal(err)
	}
	return informer
}

// TestConditions judges the conditions that the library writes by gardenlet's rules.
func TestConditions(t *testing.T) {
	const yes, no, soon, unknown = gardencorev1beta1.ConditionTrue, gardencorev1beta1.ConditionFalse, gardencorev1beta1.ConditionProgressing, gardencorev1beta1.ConditionUnknown
	running := func(*gardencorev1beta1.Shoot) {}
	for name, test := range map[string]struct {
		shoot          func(*gardencorev1beta1.Shoot)
		objects        []client.Object
		access         error
		caches, system gardencorev1beta1.ConditionStatus // "" if there is no condition
		says           string
	}{
		"healthy":           {running, []client.Object{claim(alpha, 0), pod(alpha, 0)}, nil, yes, yes, ""},
		"cannot grow":       {running, []client.Object{claim(alpha, 0, small), pod(alpha, 0)}, nil, no, no, "cache of " + alpha + ": PersistentVolumeClaim"},
		"starts":            {running, []client.Object{claim(alpha, 0), pod(alpha, 0, unready)}, nil, soon, soon, "is not ready"},
		"starts and cannot": {running, []client.Object{claim(alpha, 0, small), pod(alpha, 0, unready)}, nil, no, no, "is not ready"},
		"unreadable":        {running, nil, errors.New("no kubeconfig"), unknown, "", "no kubeconfig"},
		"hibernated": {func(s *gardencorev1beta1.Shoot) {
			s.Spec.Hibernation = &gardencorev1beta1.Hibernation{Enabled: new(true)}
		}, nil, errors.New("asleep"), yes, yes, "hibernated"},
		"wakes up":   {func(s *gardencorev1beta1.Shoot) { s.Status.IsHibernated = true }, nil, errors.New("asleep"), "", "", ""},
		"is deleted": {func(s *gardencorev1beta1.Shoot) { s.DeletionTimestamp = &metav1.Time{Time: time.Now()} }, nil, errors.New("away"), "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			seed := seedWith(t, test.shoot)
			written := run(t, seed, func(_ context.Context, of string) (client.Client, error) {
				if of != namespace {
					t.Errorf("asked for the shoot of %s", of)
				}
				return shootWith(fixed, test.objects...), test.access
			})
			for kind, want := range map[string]gardencorev1beta1.ConditionStatus{
				v1alpha3.ConditionNodesCleaned: yes, v1alpha3.ConditionCachesHealthy: test.caches, "SystemComponentsHealthy": test.system,
			} {
				condition := v1beta1helper.GetCondition(written, gardencorev1beta1.ConditionType(kind))
				if condition == nil {
					condition = &gardencorev1beta1.Condition{}
				}
				if condition.Status != want || len(condition.Codes) > 0 || kind != v1alpha3.ConditionNodesCleaned && want != "" && !strings.Contains(condition.Message, test.says) {
					t.Errorf("condition %s is %+v, want %q that says %q", kind, condition, want, test.says)
				}
			}
			judgeAsGardenlet(t, written, test.system, test.says)
		})
	}
}

// judgeAsGardenlet makes gardenlet's care derive the Shoot's condition from that of the Extension.
func judgeAsGardenlet(t *testing.T, written []gardencorev1beta1.Condition, want gardencorev1beta1.ConditionStatus, says string) {
	t.Helper()
	condition := v1beta1helper.GetCondition(written, gardencorev1beta1.ShootSystemComponentsHealthy)
	if condition == nil {
		return
	}
	care := checker.NewHealthChecker(logr.Discard(), nil, clock.RealClock{})
	got := care.CheckExtensionCondition(gardencorev1beta1.Condition{Type: gardencorev1beta1.ShootSystemComponentsHealthy}, []checker.ExtensionCondition{{
		Condition: *condition, ExtensionType: "Extension", ExtensionName: v1alpha3.ExtensionType, ExtensionNamespace: namespace,
	}}, nil)
	if want == gardencorev1beta1.ConditionTrue {
		if got != nil {
			t.Errorf("the Shoot gets %+v", got)
		}
		return
	}
	asError := []gardencorev1beta1.LastError{{Description: condition.Message, Codes: got.Codes}}
	if got.Status != want || !strings.Contains(got.Message, says) || v1beta1helper.HasNonRetryableErrorCode(asError...) {
		t.Errorf("the Shoot gets %+v, want %s", got, want)
	}
}

// TestHangingShoot checks that a shoot that does not answer blocks a worker only for the timeout.
func TestHangingShoot(t *testing.T) {
	check := newActuator(seedWith(t, func(*gardencorev1beta1.Shoot) {}), func(ctx context.Context, _ string) (client.Client, error) {
		if deadline, bounded := ctx.Deadline(); !bounded || time.Until(deadline) > timeout {
			t.Errorf("the deadline is %s", deadline)
		}
		return nil, context.DeadlineExceeded
	})
	results, err := check.ExecuteHealthCheckFunctions(t.Context(), logr.Discard(), client.ObjectKey{Namespace: namespace, Name: v1alpha3.ExtensionType})
	if err != nil || len(*results) != 1 || (*results)[0].FailedChecks != 1 {
		t.Errorf("results %+v, error %v", results, err)
	}
}

// TestWithoutCaches: without a state there is nothing to check. After all caches were removed, the
// last problems must not stay.
func TestWithoutCaches(t *testing.T) {
	for name, test := range map[string]struct {
		state  *runtime.RawExtension
		status []gardencorev1beta1.ConditionStatus
	}{
		"never deployed": {nil, nil},
		"all removed": {&runtime.RawExtension{Raw: []byte(`{"apiVersion":"registry.extensions.gardener.cloud/v1alpha3","kind":"RegistryConfig","caches":[]}`)},
			[]gardencorev1beta1.ConditionStatus{gardencorev1beta1.ConditionTrue, gardencorev1beta1.ConditionTrue}},
	} {
		t.Run(name, func(t *testing.T) {
			seed := seedWith(t, func(*gardencorev1beta1.Shoot) {})
			ex := &extensionsv1alpha1.Extension{}
			if err := seed.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: v1alpha3.ExtensionType}, ex); err != nil {
				t.Fatal(err)
			}
			ex.Status.State = test.state
			if err := seed.Status().Update(t.Context(), ex); err != nil {
				t.Fatal(err)
			}
			results, err := newActuator(seed, nil).ExecuteHealthCheckFunctions(t.Context(), logr.Discard(), client.ObjectKeyFromObject(ex))
			if err != nil {
				t.Fatal(err)
			}
			var status []gardencorev1beta1.ConditionStatus
			for _, result := range *results {
				status = append(status, result.Status)
			}
			if !slices.Equal(status, test.status) {
				t.Errorf("results %v, want %v", status, test.status)
			}
		})
	}
}
