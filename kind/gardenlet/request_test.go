package gardenlet

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/gardener-extensions/registry-cache/kind/gardener"
)

// remoteGarden is a garden in memory. Each change of the spec or request for an operation
// increments the generation of the Shoot; act then plays gardenlet.
type remoteGarden struct {
	client.Client
	operations []string
	act        func(*gardencorev1beta1.Shoot)
}

// newRemoteGarden returns a garden with a lease that was renewed before the given time, and the
// Shoot unless it is nil.
func newRemoteGarden(t *testing.T, renewed time.Duration, shoot *gardencorev1beta1.Shoot, act func(*gardencorev1beta1.Shoot)) *remoteGarden {
	t.Helper()
	garden := &remoteGarden{act: act}
	builder := fake.NewClientBuilder().WithScheme(kubernetes.GardenScheme).WithObjects(&coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: gardencorev1beta1.GardenerSeedLeaseNamespace, Name: gardener.SeedName},
		Spec:       coordinationv1.LeaseSpec{RenewTime: ptr.To(metav1.NewMicroTime(time.Now().Add(-renewed)))},
	})
	if shoot != nil {
		builder = builder.WithObjects(shoot)
	}
	changed := func(ctx context.Context, c client.WithWatch, shoot *gardencorev1beta1.Shoot, before gardencorev1beta1.ShootSpec) error {
		operation := shoot.Annotations[v1beta1constants.GardenerOperation]
		if shoot.Spec.Purpose == nil { // the default
			shoot.Spec.Purpose = ptr.To(gardencorev1beta1.ShootPurposeEvaluation)
		}
		if operation == "" && equality.Semantic.DeepEqual(before, shoot.Spec) {
			return nil
		}
		garden.operations = append(garden.operations, operation)
		delete(shoot.Annotations, v1beta1constants.GardenerOperation)
		shoot.Generation++
		garden.act(shoot)
		return c.Update(ctx, shoot)
	}
	garden.Client = builder.WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			return errors.Join(c.Create(ctx, object, options...), changed(ctx, c, object.(*gardencorev1beta1.Shoot), gardencorev1beta1.ShootSpec{}))
		},
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			before := &gardencorev1beta1.Shoot{}
			err := c.Get(ctx, client.ObjectKeyFromObject(object), before)
			return errors.Join(err, c.Patch(ctx, object, patch, options...), changed(ctx, c, object.(*gardencorev1beta1.Shoot), before.Spec))
		},
	}).Build()
	return garden
}

// ends returns what gardenlet does: it ends the operation in this state.
func ends(state gardencorev1beta1.LastOperationState, problems ...string) func(*gardencorev1beta1.Shoot) {
	return func(shoot *gardencorev1beta1.Shoot) {
		shoot.Status.ObservedGeneration = shoot.Generation
		shoot.Status.LastOperation = &gardencorev1beta1.LastOperation{State: state, Description: "described", LastUpdateTime: *now()}
		for _, problem := range problems {
			shoot.Status.LastErrors = append(shoot.Status.LastErrors, gardencorev1beta1.LastError{Description: problem})
		}
	}
}

func ignores(*gardencorev1beta1.Shoot) {}

func stored(state gardencorev1beta1.LastOperationState) *gardencorev1beta1.Shoot {
	shoot := Shoot()
	shoot.Generation = 3
	shoot.Spec.Kubernetes.Version = "1.36.4" // a default of the garden
	ends(state)(shoot)
	return shoot
}

// configured returns a stored Shoot with an extension.
func configured(config string) *gardencorev1beta1.Shoot {
	shoot := stored(gardencorev1beta1.LastOperationStateSucceeded)
	shoot.Spec.Extensions = []gardencorev1beta1.Extension{Extension("sample", []byte(config))}
	return shoot
}

// TestRequests: a remote gardenlet requests each operation as a user does, and keeps what the
// garden has set.
func TestRequests(t *testing.T) {
	const (
		succeeded, failed = gardencorev1beta1.LastOperationStateSucceeded, gardencorev1beta1.LastOperationStateFailed
		preparing         = gardencorev1beta1.RotationPreparing
	)
	hibernated := func(s *gardencorev1beta1.Shoot) bool {
		return ptr.Deref(s.Spec.Hibernation, gardencorev1beta1.Hibernation{}).Enabled != nil && s.Spec.Kubernetes.Version == "1.36.4"
	}
	kept := func(s *gardencorev1beta1.Shoot) bool { return s.Spec.Kubernetes.Version == "1.36.4" }
	for name, tc := range map[string]struct {
		before *gardencorev1beta1.Shoot
		do     func(*Gardenlet, context.Context, *gardencorev1beta1.Shoot) error
		act    func(*gardencorev1beta1.Shoot)
		want   []string // operations
		after  func(*gardencorev1beta1.Shoot) bool
		err    string
	}{
		"create":    {nil, (*Gardenlet).Reconcile, ends(succeeded), []string{""}, func(s *gardencorev1beta1.Shoot) bool { return s.UID == "" }, ""},
		"reconcile": {stored(succeeded), (*Gardenlet).Reconcile, ends(succeeded), []string{"reconcile"}, kept, ""},
		"reconcile with a default": {
			stored(succeeded), func(g *Gardenlet, ctx context.Context, shoot *gardencorev1beta1.Shoot) error {
				shoot.Spec.Purpose = nil
				return g.Reconcile(ctx, shoot)
			}, ends(succeeded), []string{"reconcile"}, kept, "",
		},
		"reconcile a config in another order": {
			configured(`{"a":1,"z":2}`), func(g *Gardenlet, ctx context.Context, _ *gardencorev1beta1.Shoot) error {
				return g.Reconcile(ctx, Shoot(Extension("sample", []byte(`{"z":2,"a":1}`))))
			}, ends(succeeded), []string{"reconcile"}, kept, "",
		},
		"hibernate": {stored(succeeded), (*Gardenlet).Hibernate, ends(succeeded), []string{""}, hibernated, ""},
		"repair":    {stored(failed), (*Gardenlet).Hibernate, ends(succeeded), []string{""}, hibernated, ""},
		"retry":     {stored(failed), (*Gardenlet).Reconcile, ends(succeeded), []string{"retry"}, kept, ""},
		"rotate": {stored(succeeded), func(g *Gardenlet, ctx context.Context, s *gardencorev1beta1.Shoot) error {
			return g.RotateCA(ctx, s, preparing)
		},
			ends(succeeded), []string{"rotate-ca-start"}, kept, ""},
		"fail":          {stored(succeeded), (*Gardenlet).Reconcile, ends(failed, "one", "two"), []string{"reconcile"}, kept, "one\ntwo"},
		"fail silently": {stored(succeeded), (*Gardenlet).Reconcile, ends(failed), []string{"reconcile"}, kept, "described"},
		"migrate":       {stored(succeeded), (*Gardenlet).Migrate, ends(succeeded), nil, kept, "has one seed"},
		"restore":       {stored(succeeded), (*Gardenlet).Restore, ends(succeeded), nil, kept, "has one seed"},
		"force-delete":  {stored(succeeded), (*Gardenlet).ForceDelete, ends(succeeded), nil, kept, "force-deletes only"},
		"other": {stored(succeeded), func(g *Gardenlet, ctx context.Context, _ *gardencorev1beta1.Shoot) error {
			return g.Reconcile(ctx, NewShoot("other"))
		}, ends(succeeded), nil, kept, "drives only shoot local, not other"},
	} {
		t.Run(name, func(t *testing.T) {
			garden := newRemoteGarden(t, 0, tc.before, tc.act)
			g := testGardenlet()
			g.Remote, g.Garden = true, garden
			err := tc.do(g, t.Context(), Shoot())
			if tc.err == "" && err != nil || tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) {
				t.Errorf("error %v, want %q", err, tc.err)
			}
			if !slices.Equal(garden.operations, tc.want) {
				t.Errorf("requested %q, want %q", garden.operations, tc.want)
			}
			shoot, err := g.Find(t.Context())
			if err != nil || shoot == nil || !tc.after(shoot) {
				t.Errorf("afterwards error %v: %+v", err, shoot)
			}
		})
	}
}

// TestSettle: an operation waits for extensions that gardener-controller-manager removes.
func TestSettle(t *testing.T) {
	for name, tc := range map[string]struct {
		registration string
		required     gardencorev1beta1.ConditionStatus
		deleted      bool
		waits        bool
	}{
		"required":     {"sample", gardencorev1beta1.ConditionTrue, false, false},
		"unneeded":     {"sample", gardencorev1beta1.ConditionFalse, false, true},
		"in deletion":  {"sample", gardencorev1beta1.ConditionTrue, true, true},
		"of the seed":  {gardener.SeedRegistration, gardencorev1beta1.ConditionFalse, false, false},
		"not observed": {"sample", "", false, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				installation := &gardencorev1beta1.ControllerInstallation{}
				installation.Name, installation.Finalizers = "sample-x5sjk", []string{"core.gardener.cloud/controllerinstallation"}
				installation.Spec.RegistrationRef.Name = tc.registration
				if tc.required != "" {
					installation.Status.Conditions = []gardencorev1beta1.Condition{{Type: gardencorev1beta1.ControllerInstallationRequired, Status: tc.required}}
				}
				g := testGardenlet()
				g.Garden = gardener.NewGarden(installation)
				if tc.deleted {
					if err := g.Garden.Delete(t.Context(), installation); err != nil {
						t.Fatal(err)
					}
				}
				start := time.Now()
				g.settle(t.Context())
				if waited := time.Since(start); (waited == settleTimeout) != tc.waits || !tc.waits && waited > 0 {
					t.Errorf("waited %s", waited)
				}
			})
		})
	}
}

// TestRequestedDeletion: the deletion is confirmed, and a repeated one begins again.
func TestRequestedDeletion(t *testing.T) {
	g := testGardenlet()
	g.Remote, g.Garden = true, newRemoteGarden(t, 0, nil, ignores)
	if err := g.Delete(t.Context(), Shoot()); err != nil {
		t.Errorf("a Shoot that does not exist: %v", err)
	}
	shoot := stored(gardencorev1beta1.LastOperationStateSucceeded)
	shoot.Finalizers = []string{finalizer}
	leave := func(shoot *gardencorev1beta1.Shoot) { shoot.Finalizers = nil }
	garden := newRemoteGarden(t, 0, shoot, leave)
	g.Garden = garden
	current, err := g.stored(t.Context())
	if err == nil {
		err = g.requestDeletion(t.Context(), current)
	}
	if err != nil || current.Generation != 4 || len(garden.operations) > 0 {
		t.Fatalf("error %v, generation %d, requested %q", err, current.Generation, garden.operations)
	}
	deleted, err := g.stored(t.Context())
	if err != nil || deleted.DeletionTimestamp == nil || deleted.Annotations[v1beta1constants.ConfirmationDeletion] != "true" {
		t.Fatalf("error %v, %+v", err, deleted)
	}
	if err := g.Delete(t.Context(), Shoot()); err != nil {
		t.Errorf("repeated: %v", err)
	}
	if !slices.Equal(garden.operations, []string{"reconcile"}) {
		t.Errorf("repeated by %q", garden.operations)
	}
	if left, err := g.Find(t.Context()); err != nil || left != nil {
		t.Errorf("afterwards %v, error %v", left, err)
	}
}

// TestAwait: a request ends when gardenlet has failed three times, or does not run, or ctx ends,
// and after requestTimeout.
func TestAwait(t *testing.T) {
	failing := func(shoot *gardencorev1beta1.Shoot) {
		ends(gardencorev1beta1.LastOperationStateError, "it fails")(shoot)
	}
	for name, tc := range map[string]struct {
		renewed time.Duration
		again   bool // gardenlet fails every ten seconds
		cancel  bool
		within  time.Duration
		want    string
	}{
		"fails often":    {0, true, false, 30 * time.Second, "it fails"},
		"fails once":     {-time.Hour, false, false, requestTimeout + time.Second, "not done after 15m0s\nit fails"},
		"does not run":   {time.Hour, false, false, time.Second, "start it with `testbed up`"},
		"is interrupted": {-time.Hour, false, true, 6 * time.Second, "interrupted"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // fake time
				garden := newRemoteGarden(t, tc.renewed, stored(gardencorev1beta1.LastOperationStateSucceeded), failing)
				g := testGardenlet()
				g.Remote, g.Garden = true, garden
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				if tc.cancel {
					time.AfterFunc(5*time.Second, func() { cancel(errors.New("interrupted")) })
				}
				if tc.again {
					again := time.AfterFunc(10*time.Second, func() { failAgain(t, g) })
					defer again.Stop()
					third := time.AfterFunc(20*time.Second, func() { failAgain(t, g) })
					defer third.Stop()
				}
				began := time.Now()
				err := g.Reconcile(ctx, Shoot())
				if err == nil || !strings.Contains(err.Error(), tc.want) || time.Since(began) > tc.within {
					t.Errorf("after %s: error %v, want %q within %s", time.Since(began), err, tc.want, tc.within)
				}
			})
		})
	}
}

func failAgain(t *testing.T, g *Gardenlet) {
	shoot, err := g.stored(t.Context())
	if err != nil {
		t.Error(err)
		return
	}
	shoot.Status.LastOperation.LastUpdateTime = *now()
	if err := g.Garden.Update(t.Context(), shoot); err != nil && !apierrors.IsConflict(err) {
		t.Error(err)
	}
}
