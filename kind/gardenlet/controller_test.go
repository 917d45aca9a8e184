package gardenlet

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	v1beta1helper "github.com/gardener/gardener/pkg/api/core/v1beta1/helper"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/component-base/version"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardener-extensions/registry-cache/kind/gardener"
)

// landscapeObjects returns what an operator of a garden creates for a Shoot.
func landscapeObjects() []client.Object {
	seed, profile := gardener.NewSeed(), cloudProfile()
	domain := func(name, domain string) (*corev1.Secret, gardencorev1beta1.SeedDNSProviderConfig) {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: gardener.GardenNamespace, Name: name}}
		return secret, gardencorev1beta1.SeedDNSProviderConfig{
			Type: provider, Domain: domain, CredentialsRef: corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: secret.Namespace, Name: name},
		}
	}
	internal, internalDNS := domain("internal-domain", "internal.test")
	standard, standardDNS := domain("default-domain", "shoot.test")
	seed.Spec.DNS.Internal, seed.Spec.DNS.Defaults = &internalDNS, []gardencorev1beta1.SeedDNSProviderConfig{standardDNS}
	return []client.Object{seed, profile, internal, standard}
}

// testController returns a controller for a garden in memory with the landscape and the Shoot.
func testController(shoot *gardencorev1beta1.Shoot) *controller {
	g := testGardenlet()
	g.Garden = fake.NewClientBuilder().WithScheme(kubernetes.GardenScheme).WithStatusSubresource(&gardencorev1beta1.Shoot{}).
		WithObjects(append(landscapeObjects(), shoot)...).Build()
	return &controller{gardenlet: g, garden: g.Garden, events: events.NewFakeRecorder(10), config: *configuration().Controllers.Shoot}
}

// seen returns the Shoot in the garden, or nil.
func (c *controller) seen(t *testing.T, name string) *gardencorev1beta1.Shoot {
	t.Helper()
	shoot := &gardencorev1beta1.Shoot{}
	err := c.garden.Get(t.Context(), client.ObjectKey{Namespace: ProjectNamespace, Name: name}, shoot)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return shoot
}

func (c *controller) reconcile(t *testing.T, name string) (reconcile.Result, error) {
	t.Helper()
	return c.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Namespace: ProjectNamespace, Name: name}})
}

// TestShootsWithoutFlow: for these Shoots no flow runs.
func TestShootsWithoutFlow(t *testing.T) {
	deleted := func(finalizers ...string) func(*gardencorev1beta1.Shoot) {
		return func(shoot *gardencorev1beta1.Shoot) { shoot.DeletionTimestamp, shoot.Finalizers = now(), finalizers }
	}
	for name, tc := range map[string]struct {
		change func(*gardencorev1beta1.Shoot)
		gone   bool
	}{
		"of no seed":        {func(shoot *gardencorev1beta1.Shoot) { shoot.Spec.SeedName = nil }, false},
		"of another seed":   {func(shoot *gardencorev1beta1.Shoot) { shoot.Spec.SeedName = ptr.To("other") }, false},
		"leaves others":     {deleted("other"), false},
		"has begun no flow": {deleted(finalizer), true},
	} {
		t.Run(name, func(t *testing.T) {
			shoot := Shoot()
			tc.change(shoot)
			c := testController(shoot)
			if result, err := c.reconcile(t, shoot.Name); err != nil || !result.IsZero() {
				t.Errorf("result %+v, error %v", result, err)
			}
			after := c.seen(t, shoot.Name)
			if (after == nil) != tc.gone || after != nil && (after.Status.LastOperation != nil || slices.Contains(after.Finalizers, finalizer)) {
				t.Errorf("afterwards %+v", after)
			}
		})
	}
	if _, err := testController(Shoot()).reconcile(t, "missing"); err != nil {
		t.Errorf("a Shoot that is gone: %v", err)
	}
}

// TestShootWithAnotherName: the Shoot fails for good, is not reconciled again until it changes,
// gets no Cluster, and can be deleted.
func TestShootWithAnotherName(t *testing.T) {
	shoot := NewShoot("other")
	shoot.Generation = 1
	c := testController(shoot)
	for range 2 {
		_, err := c.reconcile(t, shoot.Name)
		seen := c.seen(t, shoot.Name)
		last := ptr.Deref(seen.Status.LastOperation, gardencorev1beta1.LastOperation{})
		if last.State != gardencorev1beta1.LastOperationStateFailed || last.Type != gardencorev1beta1.LastOperationTypeCreate || seen.Status.UID != "" {
			t.Fatalf("error %v, status %+v", err, seen.Status)
		}
		if errs := seen.Status.LastErrors; len(errs) != 1 || !strings.Contains(errs[0].Description, "drives only shoot local") ||
			!slices.Contains(errs[0].Codes, gardencorev1beta1.ErrorConfigurationProblem) {
			t.Errorf("last errors %+v", errs)
		}
	}
	events := c.events.(*events.FakeRecorder).Events
	if len(events) != 2 || !strings.Contains(<-events, "begins") || !strings.Contains(<-events, "drives only") {
		t.Errorf("%d events remain of one operation", len(events))
	}
	if err := c.gardenlet.Seed.Client().Get(t.Context(), client.ObjectKey{Name: Namespace("other")}, &extensionsv1alpha1.Cluster{}); !apierrors.IsNotFound(err) {
		t.Errorf("its Cluster: %v", err)
	}
	if err := c.garden.Delete(t.Context(), c.seen(t, shoot.Name)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.reconcile(t, shoot.Name); err != nil || c.seen(t, shoot.Name) != nil {
		t.Errorf("the deleted Shoot remains, error %v", err)
	}
}

// TestStatusOfAnOperation: the status at the begin, after errors, and at the end of an operation.
func TestStatusOfAnOperation(t *testing.T) {
	shoot := Shoot()
	shoot.Generation = 7
	shoot.Annotations = map[string]string{v1beta1constants.GardenerOperation: "rotate-ca-start;maintain"}
	shoot.Status.Conditions = []gardencorev1beta1.Condition{
		{Type: "A", Status: gardencorev1beta1.ConditionTrue}, {Type: "B", Status: gardencorev1beta1.ConditionFalse},
	}
	c := testController(shoot)
	check := func(err error) *gardencorev1beta1.Shoot {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return c.seen(t, shoot.Name)
	}
	shoot = c.seen(t, shoot.Name)
	seen := check(c.begin(t.Context(), shoot, gardencorev1beta1.LastOperationTypeReconcile))
	if s := seen.Status; s.ObservedGeneration != 7 || s.TechnicalID != namespace || *s.SeedName != gardener.SeedName || s.RetryCycleStartTime == nil ||
		s.LastOperation.State != gardencorev1beta1.LastOperationStateProcessing || s.Gardener.Version != version.Get().GitVersion {
		t.Errorf("begun as %+v", s)
	}
	if phase := v1beta1helper.GetShootCARotationPhase(seen.Status.Credentials); phase != gardencorev1beta1.RotationPreparing {
		t.Errorf("rotation begun as %s", phase)
	}
	if left := seen.Annotations[v1beta1constants.GardenerOperation]; left != "maintain" {
		t.Errorf("the annotation is %q", left)
	}

	retried := check(c.fail(t.Context(), shoot, errors.New("it fails"))).Status
	if last := retried.LastOperation; last.State != gardencorev1beta1.LastOperationStateError || !strings.HasSuffix(last.Description, "Operation will be retried.") ||
		len(retried.LastErrors) != 1 || retried.RetryCycleStartTime == nil {
		t.Errorf("after an error %+v", retried)
	}
	coded := v1beta1helper.NewErrorWithCodes(errors.New("bad"), gardencorev1beta1.ErrorConfigurationProblem)
	if failed := check(c.fail(t.Context(), shoot, coded)).Status; failed.LastOperation.State != gardencorev1beta1.LastOperationStateFailed ||
		failed.LastOperation.Description != "Bad" || failed.RetryCycleStartTime != nil {
		t.Errorf("after a user's error %+v", failed)
	}
	shoot.Status.RetryCycleStartTime = ptr.To(metav1.NewTime(time.Now().Add(-retryFor - time.Second)))
	if failed := check(c.fail(t.Context(), shoot, errors.New("it fails"))).Status; failed.LastOperation.State != gardencorev1beta1.LastOperationStateFailed {
		t.Errorf("after %s %+v", retryFor, failed)
	}

	ended := check(c.succeed(t.Context(), shoot)).Status
	if last := ended.LastOperation; last.State != gardencorev1beta1.LastOperationStateSucceeded || last.Progress != 100 || len(ended.LastErrors) > 0 {
		t.Errorf("ended as %+v", ended)
	}
	if ended.Conditions[0].Status != gardencorev1beta1.ConditionProgressing || ended.Conditions[1].Status != gardencorev1beta1.ConditionFalse {
		t.Errorf("conditions %+v", ended.Conditions)
	}
	if phase := v1beta1helper.GetShootCARotationPhase(ended.Credentials); phase != gardencorev1beta1.RotationPrepared {
		t.Errorf("rotation ended as %s", phase)
	}
}

// TestFailedShoot: the controller updates the Cluster of a Shoot that is Failed and unchanged, and
// runs nothing.
func TestFailedShoot(t *testing.T) {
	shoot := Shoot()
	shoot.Generation, shoot.Finalizers = 2, []string{finalizer}
	shoot.Status = gardencorev1beta1.ShootStatus{
		UID: shoot.UID, SeedName: shoot.Spec.SeedName, ObservedGeneration: 2, TechnicalID: namespace,
		LastOperation: &gardencorev1beta1.LastOperation{
			Type: gardencorev1beta1.LastOperationTypeReconcile, State: gardencorev1beta1.LastOperationStateFailed, LastUpdateTime: *now(),
		},
		Gardener: gardencorev1beta1.Gardener{Version: version.Get().GitVersion},
	}
	c := testController(shoot)
	if _, err := c.reconcile(t, shoot.Name); err != nil {
		t.Fatal(err)
	}
	if state := c.seen(t, shoot.Name).Status.LastOperation.State; state != gardencorev1beta1.LastOperationStateFailed {
		t.Errorf("the Shoot is %s", state)
	}
	if found := lastShoot(t, c.gardenlet); found.Status.LastOperation.State != gardencorev1beta1.LastOperationStateFailed {
		t.Errorf("its Cluster has %+v", found.Status)
	}
}

// TestAbortOperations: only operations that were in progress are aborted.
func TestAbortOperations(t *testing.T) {
	for _, state := range []gardencorev1beta1.LastOperationState{"", gardencorev1beta1.LastOperationStateProcessing, gardencorev1beta1.LastOperationStateError} {
		shoot := Shoot()
		if state != "" {
			shoot.Status.LastOperation = &gardencorev1beta1.LastOperation{State: state}
		}
		c := testController(shoot)
		if err := abortOperations(t.Context(), c.garden, c.garden); err != nil {
			t.Fatal(err)
		}
		want := state
		if state == gardencorev1beta1.LastOperationStateProcessing {
			want = gardencorev1beta1.LastOperationStateAborted
		}
		if last := ptr.Deref(c.seen(t, shoot.Name).Status.LastOperation, gardencorev1beta1.LastOperation{}); last.State != want {
			t.Errorf("%q became %q, want %q", state, last.State, want)
		}
	}
}

// TestAdapt: a Shoot of the garden gets the machines that there are, without a CRI.
func TestAdapt(t *testing.T) {
	g := testGardenlet()
	g.Machines = []Machine{nil, nil, nil}
	shoot := Shoot()
	shoot.Spec.Provider.Workers[0].CRI = &gardencorev1beta1.CRI{Name: gardencorev1beta1.CRINameContainerD}
	if pool := g.adapt(shoot).Spec.Provider.Workers[0]; pool.CRI != nil || pool.Minimum != 3 || pool.Maximum != 3 {
		t.Errorf("pool %+v", pool)
	}
	if shoot.Spec.Provider.Workers[0].CRI == nil {
		t.Error("the garden's Shoot was changed")
	}
}
