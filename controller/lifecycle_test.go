package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	v1beta1helper "github.com/gardener/gardener/pkg/api/core/v1beta1/helper"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/controller/retry"
)

func sized(size string) func(*v1alpha3.RegistryConfig) {
	return func(c *v1alpha3.RegistryConfig) {
		c.Caches[0].Volume = &v1alpha3.Volume{Size: ptr.To(resource.MustParse(size))}
	}
}

// assertConfigurationError checks that the error contains all texts. It must also have the code by
// which Gardener shows it as a mistake of the Shoot's owner.
func assertConfigurationError(t *testing.T, err error, says ...string) {
	t.Helper()
	if !slices.Contains(v1beta1helper.ExtractErrorCodes(err), gardencorev1beta1.ErrorConfigurationProblem) {
		t.Errorf("error %v has no code %s", err, gardencorev1beta1.ErrorConfigurationProblem)
	}
	for _, text := range says {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("error = %v, want it to contain %q", err, text)
		}
	}
}

func TestRejectedUpdate(t *testing.T) {
	l, w := newRunningLandscape(t, func(c *v1alpha3.RegistryConfig) {
		c.Caches[0].ServiceNameSuffix = ptr.To("beta-upstream-test")
	})
	assertConfigurationError(t, l.reconcile(t), "caches[0].serviceNameSuffix")
	if len(w.writes()) > 0 {
		t.Errorf("something was written: %q", w.writes())
	}
}

func TestWorkerlessShoot(t *testing.T) {
	l := newLandscape(t, newExtension([]string{alpha}, nil), cluster(func(s *gardencorev1beta1.Shoot) { s.Spec.Provider.Workers = nil }))
	assertConfigurationError(t, l.reconcile(t), "has no workers")
	if len(l.log) > 0 {
		t.Errorf("something was written: %v", l.log)
	}
}

func TestMissingReference(t *testing.T) {
	l := newLandscape(t, newExtension([]string{alpha}, []string{alpha, beta}), cluster())
	l.configure(t, func(c *v1alpha3.RegistryConfig) { c.Caches[0].SecretReferenceName = ptr.To("login") })
	assertConfigurationError(t, l.reconcile(t), "caches[0].secretReferenceName", `"login"`)
	if len(l.log) > 0 {
		t.Errorf("something was written before the reference was checked: %v", l.log)
	}
}

// TestOutdatedCopy checks that an outdated copy of a Secret is not taken for a mistake.
func TestOutdatedCopy(t *testing.T) {
	shoot := func(s *gardencorev1beta1.Shoot) {
		s.Spec.Resources = []gardencorev1beta1.NamedResourceReference{{Name: "login"}}
		s.Spec.Resources[0].ResourceRef.APIVersion, s.Spec.Resources[0].ResourceRef.Kind, s.Spec.Resources[0].ResourceRef.Name = "v1", "Secret", "login"
	}
	old := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "ref-login"}} // without a password
	copies := managedResource("referenced-resources")
	copies.Generation, copies.Status.ObservedGeneration = 2, 1
	l := newLandscape(t, newExtension([]string{alpha}, nil), cluster(shoot), old, copies)
	l.configure(t, func(c *v1alpha3.RegistryConfig) { c.Caches[0].SecretReferenceName = ptr.To("login") })
	if err := l.reconcile(t); !retry.IsWaiting(err) || v1beta1helper.ExtractErrorCodes(err) != nil {
		t.Errorf("error = %v", err)
	}
	// Something else cannot be copied.
	copies.Status.Conditions = []gardencorev1beta1.Condition{{Type: resourcesv1alpha1.ResourcesApplied, Status: gardencorev1beta1.ConditionFalse}}
	if err := l.unwatched.Status().Update(t.Context(), copies); err != nil {
		t.Fatal(err)
	}
	assertConfigurationError(t, l.reconcile(t), "caches[0].secretReferenceName")
}

// TestRemovalSurvivesMigration checks that status.state is enough for the next seed.
func TestRemovalSurvivesMigration(t *testing.T) {
	l, _ := newRunningLandscape(t, func(c *v1alpha3.RegistryConfig) { c.Caches = c.Caches[1:] })
	if err := l.actuator.Migrate(t.Context(), logr.Discard(), l.extension(t)); err != nil {
		t.Fatal(err)
	}
	ex := l.extension(t)
	ex.Status.ProviderStatus = nil
	if err := l.seed.Status().Update(t.Context(), ex); err != nil {
		t.Fatal(err)
	}
	l.log = nil
	if err := l.actuator.Restore(t.Context(), logr.Discard(), ex); err != nil {
		t.Fatal(err)
	}
	want := []string{"status []", "apply " + cleanerName, "delete " + cleanerName, "status []", "apply " + servicesName, "apply " + cachesName, "status [beta.upstream.test]"}
	if !slices.Equal(l.log, want) {
		t.Errorf("writes = %q, want %q", l.log, want)
	}
}

func TestHibernation(t *testing.T) {
	l := newLandscape(t, newExtension([]string{alpha}, nil), cluster(hibernated))
	w := l.tap()
	if err := l.reconcile(t); err != nil {
		t.Fatal(err)
	}
	if slices.ContainsFunc(w.requests, func(r string) bool { return strings.HasPrefix(r, "shoot ") }) || l.extension(t).Status.ProviderStatus != nil {
		t.Errorf("requests to a shoot that never ran: %q", w.requests)
	}
	l.changeShoot(t)
	if err := l.reconcile(t); err != nil || !slices.Equal(upstreamsOf(l.extension(t)), []string{alpha}) {
		t.Errorf("after waking up status has %v, error %v", upstreamsOf(l.extension(t)), err)
	}
	l.changeShoot(t, hibernated)
	l.configure(t, sized("20Gi"))
	if err := l.reconcile(t); err != nil || !slices.Equal(upstreamsOf(l.extension(t)), []string{alpha}) {
		t.Errorf("while hibernated, status has %v, error %v", upstreamsOf(l.extension(t)), err)
	}
	l.assertSizes(t, "while hibernated", map[string]string{"-0": "10Gi"})
	l.changeShoot(t)
	l.reconciled(t)
	l.assertSizes(t, "after waking up", map[string]string{"-0": "20Gi"})
}

// TestHibernationWithMistake checks that a mistake does not prevent hibernation, but is an error
// when the Shoot wakes up.
func TestHibernationWithMistake(t *testing.T) {
	for name, change := range map[string]func(*v1alpha3.RegistryConfig){
		"missing reference": func(c *v1alpha3.RegistryConfig) { c.Caches[0].SecretReferenceName = ptr.To("gone") },
		"invalid field":     func(c *v1alpha3.RegistryConfig) { c.Caches[0].RemoteURL = ptr.To("ftp://x") },
	} {
		t.Run(name, func(t *testing.T) {
			l, _ := newRunningLandscape(t, change)
			before := l.inShoot(t)
			for _, state := range []func(*gardencorev1beta1.Shoot){hibernating, hibernated} {
				l.changeShoot(t, state)
				l.reconciled(t)
			}
			condition := v1beta1helper.GetCondition(l.extension(t).Status.Conditions, v1alpha3.ConditionConfigurationValid)
			if condition == nil || condition.Status != gardencorev1beta1.ConditionFalse {
				t.Errorf("the condition is %v", condition)
			}
			l.changeShoot(t)
			assertConfigurationError(t, l.reconcile(t))
			if after := l.inShoot(t); !slices.Equal(before, after) {
				t.Errorf("the shoot has %q, had %q", after, before)
			}
			l.configure(t, func(c *v1alpha3.RegistryConfig) { c.Caches[0].SecretReferenceName, c.Caches[0].RemoteURL = nil, nil })
			l.reconciled(t)
			condition = v1beta1helper.GetCondition(l.extension(t).Status.Conditions, v1alpha3.ConditionConfigurationValid)
			if condition == nil || condition.Status != gardencorev1beta1.ConditionTrue {
				t.Errorf("after the correction, the condition is %v", condition)
			}
		})
	}
}

func TestMonitoring(t *testing.T) {
	forTesting := func(s *gardencorev1beta1.Shoot) { s.Spec.Purpose = ptr.To(gardencorev1beta1.ShootPurposeTesting) }
	l := newLandscape(t, newExtension([]string{alpha}, nil), cluster(forTesting))
	for _, test := range []struct {
		changes []func(*gardencorev1beta1.Shoot)
		want    bool
	}{{[]func(*gardencorev1beta1.Shoot){forTesting}, false}, {nil, true}, {[]func(*gardencorev1beta1.Shoot){forTesting}, false}} {
		l.changeShoot(t, test.changes...)
		if err := l.reconcile(t); err != nil || l.exists(t, monitoringName) != test.want {
			t.Errorf("monitoring exists: %t, want %t, error %v", !test.want, test.want, err)
		}
	}
}

// TestNodesCleaned checks that the condition names skipped nodes, and that the condition is True
// again after a complete clean-up.
func TestNodesCleaned(t *testing.T) {
	l, _ := newRunningLandscape(t, func(c *v1alpha3.RegistryConfig) { c.Caches = c.Caches[1:] })
	l.actuator.waits.skipAfter = 0
	broken := worker("broken", false)
	if err := l.shoot.Create(t.Context(), broken); err != nil {
		t.Fatal(err)
	}
	if err := l.reconcile(t); err != nil {
		t.Fatal(err)
	}
	condition := v1beta1helper.GetCondition(l.extension(t).Status.Conditions, v1alpha3.ConditionNodesCleaned)
	if condition == nil || condition.Status != gardencorev1beta1.ConditionFalse || !strings.Contains(condition.Message, "broken") {
		t.Errorf("condition = %v", condition)
	}
	if err := l.shoot.Delete(t.Context(), broken); err != nil {
		t.Fatal(err)
	}
	l.configure(t, func(c *v1alpha3.RegistryConfig) { c.Caches[0].Upstream = "gamma.upstream.test" })
	if err := l.reconcile(t); err != nil {
		t.Fatal(err)
	}
	condition = v1beta1helper.GetCondition(l.extension(t).Status.Conditions, v1alpha3.ConditionNodesCleaned)
	if condition == nil || condition.Status != gardencorev1beta1.ConditionTrue {
		t.Errorf("condition = %v", condition)
	}
}

// wire is between the actuator and the clients. It records all requests and can fail them.
type wire struct {
	// requests are "seed read Kind", "shoot write Kind" and so on, in order.
	requests []string
	// accesses counts requests for the client of the shoot.
	accesses int
	// fail, if set, is called before and after each request, and the actuator gets its error. The
	// first request has the number 1.
	fail func(number int, done bool) error
	// block, if set, is called before each request and may block it.
	block func(ctx context.Context, number int, text string) error
}

var errLost = errors.New("connection lost")

// tap puts a wire between the actuator of the landscape and its clients.
func (l *landscape) tap() *wire {
	w := &wire{}
	l.actuator.client = w.through("seed", l.seed)
	l.actuator.shootClient = func(context.Context, string) (client.Client, error) {
		w.accesses++
		return w.through("shoot", l.shoot), nil
	}
	return w
}

func (w *wire) writes() []string {
	return slices.DeleteFunc(slices.Clone(w.requests), func(r string) bool { return strings.Contains(r, " read ") })
}

func (w *wire) request(ctx context.Context, text string, object any, do func() error) error {
	w.requests = append(w.requests, text+" "+strings.TrimPrefix(fmt.Sprintf("%T", object), "*v1alpha1."))
	number := len(w.requests)
	if err := ctx.Err(); err != nil {
		return err
	}
	if w.block != nil {
		if err := w.block(ctx, number, text); err != nil {
			return err
		}
	}
	if w.fail != nil {
		if err := w.fail(number, false); err != nil {
			return err
		}
	}
	if err := do(); err != nil {
		return err
	}
	if w.fail != nil {
		return w.fail(number, true)
	}
	return nil
}

func (w *wire) through(side string, to client.WithWatch) client.Client {
	return interceptor.NewClient(to, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			return w.request(ctx, side+" read", obj, func() error { return c.Get(ctx, key, obj, opts...) })
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			return w.request(ctx, side+" read", list, func() error { return c.List(ctx, list, opts...) })
		},
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			return w.request(ctx, side+" write", obj, func() error { return c.Create(ctx, obj, opts...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			return w.request(ctx, side+" write", obj, func() error { return c.Update(ctx, obj, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			return w.request(ctx, side+" write", obj, func() error { return c.Patch(ctx, obj, patch, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			return w.request(ctx, side+" write", obj, func() error { return c.Delete(ctx, obj, opts...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			return w.request(ctx, side+" write", obj, func() error { return c.SubResource(sub).Patch(ctx, obj, patch, opts...) })
		},
	})
}

// byLibrary is the number of requests that Gardener's extension library adds to each
// reconciliation: the finalizer (only the first time), the status before and after the
// reconciliation, and the removal of the operation annotation.
const byLibrary = 4

// TestLostSecret: a Secret that gardener-resource-manager misses is written again.
func TestLostSecret(t *testing.T) {
	l, _ := newRunningLandscape(t, func(*v1alpha3.RegistryConfig) {})
	mr, err := l.actuator.managedResource(t.Context(), namespace, cachesName)
	if err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: mr.Spec.SecretRefs[0].Name}}
	if err := l.seed.Delete(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	_ = l.manage(t.Context(), cachesName) // sets ResourcesApplied to False
	if err := l.reconcile(t); err != nil {
		t.Fatal(err)
	}
	if err := l.seed.Get(t.Context(), client.ObjectKeyFromObject(secret), secret); err != nil {
		t.Error(err)
	}
}

// TestRequests limits the number of requests of a reconciliation.
func TestRequests(t *testing.T) {
	for name, upstreams := range map[string][]string{"one cache": {alpha}, "two caches": {alpha, beta}} {
		t.Run(name, func(t *testing.T) {
			l := newLandscape(t, newExtension(upstreams, nil), cluster())
			w := l.tap()
			if err := l.reconcile(t); err != nil {
				t.Fatal(err)
			}
			// The access to the shoot takes one or two more requests.
			if total := len(w.requests) + 2 + byLibrary; total > 17 {
				t.Errorf("the first reconciliation takes %d requests:\n%s", total, strings.Join(w.requests, "\n"))
			}
			want := slices.Concat([]string{"seed write Extension"},
				slices.Repeat([]string{"seed write *v1.Secret", "seed write ManagedResource"}, 3), []string{"seed write Extension"})
			if got := w.writes(); !slices.Equal(got, want) {
				t.Errorf("the first reconciliation writes %q", got)
			}
			w.requests = nil
			if err := l.reconcile(t); err != nil {
				t.Fatal(err)
			}
			if got := w.writes(); len(got) > 0 {
				t.Errorf("a reconciliation without a change writes %q", got)
			}
			if len(w.requests) > 10 {
				t.Errorf("a reconciliation without a change takes %d requests:\n%s", len(w.requests), strings.Join(w.requests, "\n"))
			}
			if w.accesses != 2 {
				t.Errorf("two reconciliations requested the client for the shoot %d times", w.accesses)
			}
		})
	}
}
