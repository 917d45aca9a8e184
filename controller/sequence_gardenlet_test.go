package controller

import (
	"context"
	"slices"
	"time"

	v1beta1helper "github.com/gardener/gardener/pkg/api/core/v1beta1/helper"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

type operation func(*Actuator, context.Context, logr.Logger, *extensionsv1alpha1.Extension) error

// retried acts as the workqueue: it repeats the operation until it succeeds, cannot succeed, or
// gardenlet stops waiting.
func (s *seqWorld) retried(do operation) (err error) {
	for started := time.Now(); ; {
		ctx, cancel := context.WithCancel(s.t.Context())
		s.cancel = cancel
		err = do(s.actuator, ctx, logr.Discard(), s.extensionIfAny())
		ended := ctx.Err() != nil
		cancel()
		s.expectNoDead()
		switch {
		case err == nil:
			s.actuator.retries.Forget(request)
			return nil
		case ended:
			s.connect()
		case slices.Contains(v1beta1helper.ExtractErrorCodes(err), gardencorev1beta1.ErrorConfigurationProblem):
			return err // the Shoot is Failed
		}
		if s.short || time.Since(started) > seqPatience {
			return err
		}
		<-time.After(s.actuator.retries.When(request))
		s.catchUpInTime()
	}
}

// roll acts as gardenlet when it reconciles the Shoot. See seqEvent for early ends.
func (s *seqWorld) roll(how string) {
	s.short, s.undone = how == "short", true
	defer func() { s.short = false }()
	s.excused = s.excused || s.noCleaner != ""
	s.rolled = s.wish
	s.syncCluster()
	ex := s.extensionIfAny()
	if ex != nil && (s.wish.disabled || ex.DeletionTimestamp != nil) && !s.removeExtension(ex) {
		return
	}
	if !s.wish.disabled && !s.reconcileExtension() {
		return
	}
	if how == "late" {
		return
	}
	<-time.After(30 * time.Second) // gardenlet checks every 5 seconds, and nodes get its writes late
	if s.lag > 0 {
		s.catchUpNow()
	}
	s.expectNoDead()
	s.drop()
	s.setNodes(!s.rolled.asleep)
	s.configureNodes()
	s.excused, s.undone = s.noCleaner != "" && s.excused, false
	s.isAsleep = s.rolled.asleep
	s.syncCluster()
}

// removeExtension reports whether the Extension is gone.
func (s *seqWorld) removeExtension(ex *extensionsv1alpha1.Extension) bool {
	if ex.DeletionTimestamp == nil {
		s.must(s.unwatched.Delete(s.t.Context(), ex))
	}
	if err := s.retried((*Actuator).Delete); err != nil {
		if !s.pendingGuarded() && !s.short {
			s.fail("the deletion of the Extension fails: %v", err)
		}
		return false
	}
	s.forget()
	return true
}

func (s *seqWorld) forget() {
	if ex := s.extensionIfAny(); ex != nil {
		ex.Finalizers = nil
		s.must(s.unwatched.Update(s.t.Context(), ex))
		s.must(client.IgnoreNotFound(s.unwatched.Delete(s.t.Context(), ex)))
	}
}

// reconcileExtension reports whether the Extension is ready.
func (s *seqWorld) reconcileExtension() bool {
	do, what := (*Actuator).Reconcile, "the reconciliation"
	switch ex := s.extensionIfAny(); {
	case ex == nil:
		s.must(s.unwatched.Create(s.t.Context(), s.newExtension(nil)))
	case !s.restored:
		do, what = (*Actuator).Restore, "the restoration"
	default:
		if raw := s.rolled.config(); string(raw) != string(ex.Spec.ProviderConfig.Raw) {
			ex.Spec.ProviderConfig.Raw = raw
			ex.Generation++
			s.must(s.unwatched.Update(s.t.Context(), ex))
		}
	}
	running := s.extensionIfAny().Status.State != nil
	err := s.retried(do)
	switch {
	case err == nil:
		s.restored = true
	case s.short, s.pendingGuarded(), s.isForeign(), s.rolled.mistake != "" && s.restored && (!running || !s.rolled.asleep):
		// only the owner can help
	case s.rolled.mistake != "" && !s.restored:
		s.fail("the restoration fails for a mistake that cannot be corrected then: %v", err)
	case s.rolled.mistake != "":
		s.fail("hibernation fails for a mistake: %v", err)
	default:
		s.fail("%s fails: %v", what, err)
	}
	return err == nil
}

// migrate moves the control plane to another seed. A Shoot that was never rolled out, or whose
// Extension is being deleted, is not moved. An Extension that the Shoot no longer lists is not
// migrated but deleted ("Deleting stale extensions",
// pkg/gardenlet/controller/shoot/shoot/reconciler_migrate.go).
func (s *seqWorld) migrate() {
	ex := s.extensionIfAny()
	if ex == nil || ex.DeletionTimestamp != nil || !s.restored {
		return
	}
	if s.wish.disabled {
		s.roll("roll")
		return
	}
	s.awake = true
	s.catchUpNow()
	if err := s.retried((*Actuator).Migrate); err != nil && !s.pendingGuarded() {
		s.fail("the migration fails: %v", err)
	} else if err != nil {
		s.guarded = false // the owner must help
		s.resyncAll()
		s.must(s.retried((*Actuator).Migrate))
	}
	mrs, persisted, now := &resourcesv1alpha1.ManagedResourceList{}, &corev1.SecretList{}, &extensionsv1alpha1.Cluster{}
	s.must(s.unwatched.List(s.t.Context(), mrs))
	if len(mrs.Items) > 0 {
		s.fail("a ManagedResource stays in the old seed: %s", mrs.Items[0].Name)
	}
	s.must(s.unwatched.List(s.t.Context(), persisted, client.MatchingLabels{"persist": "true"}))
	s.must(s.unwatched.Get(s.t.Context(), client.ObjectKey{Name: namespace}, now))
	now.ResourceVersion, now.UID = "", ""
	objects := []client.Object{now}
	for _, secret := range persisted.Items {
		objects = append(objects, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: secret.Name, Labels: secret.Labels}, Data: secret.Data})
	}
	state := s.extensionIfAny().Status.State
	s.awake, s.missed, s.restored, s.rolled = false, map[string]bool{}, false, s.wish
	if !s.rolled.disabled {
		objects = append(objects, s.newExtension(state))
	} else {
		s.restored = true
	}
	s.newSeed(objects...)
	s.connect()
	s.roll("roll")
}

// delete deletes the Shoot. gardenlet wakes it up, and deletes the workers before the Extension.
func (s *seqWorld) delete(force bool) {
	if !s.restored || s.extensionIfAny() == nil {
		return
	}
	s.deleting, s.guarded, s.noCleaner, s.rolled = true, false, "", s.wish
	s.setNodes(false)
	s.syncCluster()
	do, what := (*Actuator).Delete, "the deletion"
	if force {
		do, what = func(a *Actuator, ctx context.Context, log logr.Logger, ex *extensionsv1alpha1.Extension) error {
			return a.ForceDelete(ctx, log, ex)
		}, "the forced deletion"
	}
	ex := s.extensionIfAny()
	s.must(s.unwatched.Delete(s.t.Context(), ex))
	if err := s.retried(do); err != nil {
		s.fail("%s of the Shoot fails: %v", what, err)
	}
	s.forget()
	s.wish.disabled, s.forced = true, force
	if force {
		s.catchUpNow() // gardenlet removes the finalizers that gardener-resource-manager leaves
		mrs := &resourcesv1alpha1.ManagedResourceList{}
		s.must(s.unwatched.List(s.t.Context(), mrs))
		if len(mrs.Items) > 0 {
			s.fail("a forced deletion leaves a ManagedResource: %s", mrs.Items[0].Name)
		}
	}
}

// newExtension returns the Extension that gardenlet writes.
func (s *seqWorld) newExtension(state *runtime.RawExtension) *extensionsv1alpha1.Extension {
	ex := rawExtension(s.rolled.config())
	ex.Generation, ex.Finalizers = 1, []string{"extensions.gardener.cloud/registry-cache"}
	ex.Status.State = state
	return ex
}
