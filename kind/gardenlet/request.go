package gardenlet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	v1beta1helper "github.com/gardener/gardener/pkg/api/core/v1beta1/helper"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/kind/gardener"
)

const (
	requestInterval = 200 * time.Millisecond
	// requestTimeout bounds how long a requested operation may take, including its retries.
	requestTimeout = 15 * time.Minute
	settleTimeout  = time.Minute // a deletion of a ControllerInstallation takes some 20 s
	// leaseTimeout is how old gardenlet's lease may be, as for gardener-controller-manager.
	leaseTimeout = 40 * time.Second
)

// requestError is a usage error.
type requestError string

func (e requestError) Error() string { return string(e) }
func (requestError) UsageError()     {}

// Errors of operations that a garden does not offer.
const (
	errNeedsSeed   requestError = "a testbed with a garden has one seed, so its Shoot cannot move: use a testbed without a garden"
	errForceDelete requestError = "a garden force-deletes only a Shoot whose deletion failed: annotate it with " +
		v1beta1constants.AnnotationConfirmationForceDeletion + "=true"
)

// request changes the Shoot in the garden as a user would, and waits until the permanent gardenlet
// reports the end of the operation. It gives up after as many failures as run does. If ctx ends,
// the operation continues.
func (g *Gardenlet) request(ctx context.Context, shoot *gardencorev1beta1.Shoot, p process) error {
	switch {
	case shoot.Name != g.Name:
		return requestError(fmt.Sprintf("the testbed drives only shoot %s, not %s", g.Name, shoot.Name))
	case p.operation != "":
		return errNeedsSeed
	case v1beta1helper.ShootNeedsForceDeletion(shoot):
		return errForceDelete
	}
	current, err := g.stored(ctx)
	if err != nil {
		return err
	}
	if shoot.DeletionTimestamp == nil {
		g.settle(ctx)
	}
	switch {
	case shoot.DeletionTimestamp != nil && current == nil:
		return nil
	case shoot.DeletionTimestamp != nil:
		err = g.requestDeletion(ctx, current)
	case current == nil:
		current, err = g.create(ctx, shoot)
	default:
		err = g.change(ctx, current, shoot, p.rotation)
	}
	if err != nil {
		return err
	}
	return g.await(ctx, current.Generation)
}

// settle waits, for at most settleTimeout, until gardener-controller-manager has removed the
// extensions that no Shoot needs any more. While a ControllerInstallation is in deletion,
// gardener-controller-manager cannot create its successor. It tries again after pauses that double,
// so the successor may come minutes after the deletion.
func (g *Gardenlet) settle(ctx context.Context) {
	_ = wait.PollUntilContextTimeout(ctx, requestInterval, settleTimeout, true, func(ctx context.Context) (bool, error) {
		installations := &gardencorev1beta1.ControllerInstallationList{}
		err := g.Garden.List(ctx, installations)
		return err == nil && !slices.ContainsFunc(installations.Items, func(i gardencorev1beta1.ControllerInstallation) bool {
			return i.DeletionTimestamp != nil ||
				!v1beta1helper.IsControllerInstallationRequired(i) && i.Spec.RegistrationRef.Name != gardener.SeedRegistration
		}), nil
	})
}

// stored returns the Shoot in the garden, or nil.
func (g *Gardenlet) stored(ctx context.Context) (*gardencorev1beta1.Shoot, error) {
	shoot := &gardencorev1beta1.Shoot{}
	key := client.ObjectKey{Namespace: ProjectNamespace, Name: g.Name}
	if err := g.Garden.Get(ctx, key, shoot); apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("read shoot %s in the garden: %w", key, err)
	}
	return shoot, nil
}

func (g *Gardenlet) create(ctx context.Context, shoot *gardencorev1beta1.Shoot) (*gardencorev1beta1.Shoot, error) {
	created := &gardencorev1beta1.Shoot{
		ObjectMeta: metav1.ObjectMeta{Namespace: shoot.Namespace, Name: shoot.Name, Labels: shoot.Labels, Annotations: shoot.Annotations},
		Spec:       *shoot.Spec.DeepCopy(),
	}
	if err := g.Garden.Create(ctx, created); err != nil {
		return nil, fmt.Errorf("create shoot %s in the garden: %w", client.ObjectKeyFromObject(shoot), err)
	}
	return created, nil
}

// change makes the current Shoot in the garden like wanted, and requests an operation. Fields that
// the operations of the testbed never change remain as they are in the garden.
func (g *Gardenlet) change(
	ctx context.Context, current, wanted *gardencorev1beta1.Shoot, rotation gardencorev1beta1.CredentialsRotationPhase,
) error {
	before := current.DeepCopy()
	for key, value := range wanted.Annotations {
		metav1.SetMetaDataAnnotation(&current.ObjectMeta, key, value)
	}
	for key, value := range wanted.Labels {
		metav1.SetMetaDataLabel(&current.ObjectMeta, key, value)
	}
	current.Spec.Extensions, current.Spec.Resources = wanted.Spec.Extensions, wanted.Spec.Resources
	current.Spec.Hibernation, current.Spec.Purpose = wanted.Spec.Hibernation, wanted.Spec.Purpose
	current.Spec.SystemComponents, current.Spec.Monitoring = wanted.Spec.SystemComponents, wanted.Spec.Monitoring
	if wanted.Spec.Maintenance != nil {
		current.Spec.Maintenance = wanted.Spec.Maintenance
	}
	if err := g.Garden.Patch(ctx, current, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("update shoot %s in the garden: %w", client.ObjectKeyFromObject(current), err)
	}
	// A changed spec needs no annotation, which gardener-apiserver would keep until the next change.
	// Only gardener-apiserver knows whether the spec has changed, because it sets defaults.
	if current.Generation != before.Generation && rotation == "" {
		return nil
	}
	unannotated := client.MergeFrom(current.DeepCopy())
	metav1.SetMetaDataAnnotation(&current.ObjectMeta, v1beta1constants.GardenerOperation, operationFor(before, rotation))
	if err := g.Garden.Patch(ctx, current, unannotated); err != nil {
		return fmt.Errorf("annotate shoot %s in the garden: %w", client.ObjectKeyFromObject(current), err)
	}
	return nil
}

// operationFor returns the operation that makes gardenlet act on the Shoot.
func operationFor(shoot *gardencorev1beta1.Shoot, rotation gardencorev1beta1.CredentialsRotationPhase) string {
	switch {
	case rotation == gardencorev1beta1.RotationPreparing:
		return v1beta1constants.OperationRotateCAStart
	case rotation == gardencorev1beta1.RotationCompleting:
		return v1beta1constants.OperationRotateCAComplete
	case ptr.Deref(shoot.Status.LastOperation, gardencorev1beta1.LastOperation{}).State == gardencorev1beta1.LastOperationStateFailed:
		return v1beta1constants.ShootOperationRetry // the only operation of a failed Shoot
	}
	return v1beta1constants.GardenerOperationReconcile
}

// requestDeletion confirms and requests the deletion of the Shoot, or repeats it.
func (g *Gardenlet) requestDeletion(ctx context.Context, current *gardencorev1beta1.Shoot) error {
	if current.DeletionTimestamp != nil {
		return g.change(ctx, current, current.DeepCopy(), "")
	}
	patch := client.MergeFrom(current.DeepCopy())
	metav1.SetMetaDataAnnotation(&current.ObjectMeta, v1beta1constants.ConfirmationDeletion, "true")
	if err := g.Garden.Patch(ctx, current, patch); err != nil {
		return fmt.Errorf("confirm the deletion of shoot %s: %w", client.ObjectKeyFromObject(current), err)
	}
	if err := g.Garden.Delete(ctx, current.DeepCopy()); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete shoot %s in the garden: %w", client.ObjectKeyFromObject(current), err)
	}
	current.Generation++ // as gardener-apiserver does
	return nil
}

// await returns nil when an operation on this generation of the Shoot has succeeded, or the Shoot
// is gone. It returns the errors in the Shoot if the operation failed for good, or often enough,
// and another error if gardenlet does not run.
func (g *Gardenlet) await(ctx context.Context, generation int64) error {
	failures := sets.New[int64]()
	var problem error // of the last attempt
	err := wait.PollUntilContextTimeout(ctx, requestInterval, requestTimeout, true, func(ctx context.Context) (bool, error) {
		shoot, err := g.stored(ctx)
		if shoot == nil && err == nil {
			return true, nil
		}
		if err != nil || shoot.Status.ObservedGeneration < generation || shoot.Status.LastOperation == nil {
			problem = err
			return false, Running(ctx, g.Garden)
		}
		problem = nil
		switch last := shoot.Status.LastOperation; last.State {
		case gardencorev1beta1.LastOperationStateSucceeded:
			return last.Type != gardencorev1beta1.LastOperationTypeDelete, nil
		case gardencorev1beta1.LastOperationStateError, gardencorev1beta1.LastOperationStateFailed:
			problem = lastErrors(shoot)
			failures.Insert(last.LastUpdateTime.Unix())
			if last.State == gardencorev1beta1.LastOperationStateFailed || failures.Len() >= attempts {
				return false, problem
			}
		}
		return false, Running(ctx, g.Garden)
	})
	switch {
	case err == nil || errors.Is(err, problem):
		return err
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case wait.Interrupted(err):
		err = fmt.Errorf("not done after %s", requestTimeout)
	}
	return fmt.Errorf("wait for the operation on shoot %s: %w", g.Name, errors.Join(err, problem))
}

// Running returns an error if the permanent gardenlet has not renewed its lease for leaseTimeout.
// It ignores that the lease cannot be read.
func Running(ctx context.Context, garden client.Reader) error {
	if renewed, err := Renewed(ctx, garden); err == nil && time.Since(renewed) > leaseTimeout {
		return fmt.Errorf("gardenlet has not renewed its lease since %s: start it with `testbed up`", renewed.Format(time.TimeOnly))
	}
	return nil
}

// Renewed returns when the permanent gardenlet last renewed its lease in the garden.
func Renewed(ctx context.Context, garden client.Reader) (time.Time, error) {
	lease := &coordinationv1.Lease{}
	key := client.ObjectKey{Namespace: gardencorev1beta1.GardenerSeedLeaseNamespace, Name: gardener.SeedName}
	if err := garden.Get(ctx, key, lease); err != nil {
		return time.Time{}, fmt.Errorf("read the lease of gardenlet: %w", err)
	}
	return ptr.Deref(lease.Spec.RenewTime, metav1.MicroTime{}).Time, nil
}

// lastErrors returns the errors in the Shoot's status.
func lastErrors(shoot *gardencorev1beta1.Shoot) error {
	var errs []error
	for _, last := range shoot.Status.LastErrors {
		errs = append(errs, errors.New(last.Description))
	}
	if len(errs) == 0 {
		return errors.New(shoot.Status.LastOperation.Description)
	}
	return errors.Join(errs...)
}
