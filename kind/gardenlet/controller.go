package gardenlet

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	v1beta1helper "github.com/gardener/gardener/pkg/api/core/v1beta1/helper"
	gardenletconfigv1alpha1 "github.com/gardener/gardener/pkg/apis/config/gardenlet/v1alpha1"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"github.com/gardener/gardener/pkg/controllerutils"
	"github.com/gardener/gardener/pkg/gardenlet/controller/shoot/shoot/helper"
	"github.com/gardener/gardener/pkg/utils"
	"github.com/gardener/gardener/pkg/utils/flow"
	gardenerutils "github.com/gardener/gardener/pkg/utils/gardener"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/component-base/version"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardener-extensions/registry-cache/kind/gardener"
)

const (
	finalizer = gardencorev1beta1.GardenerName
	// reportPeriod is the minimum time between two reports of a flow's progress.
	reportPeriod = time.Second
	// extensionsTimeout bounds how long an operation waits for the ControllerInstallations that the
	// Shoot requires.
	extensionsTimeout = time.Minute
)

// controller runs the flows for the Shoots of a garden and writes their status, as gardenlet's
// Shoot controller does (pkg/gardenlet/controller/shoot/shoot), whose flows cannot be replaced. The
// package comment describes what it does with a Shoot.
type controller struct {
	gardenlet *Gardenlet
	garden    client.Client
	events    events.EventRecorder
	config    gardenletconfigv1alpha1.ShootControllerConfiguration
}

// Reconcile implements reconcile.Reconciler.
func (c *controller) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	shoot := &gardencorev1beta1.Shoot{}
	if err := c.garden.Get(ctx, request.NamespacedName, shoot); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	deleted := shoot.DeletionTimestamp != nil
	switch {
	case gardenerutils.GetResponsibleSeedName(shoot.Spec.SeedName, shoot.Status.SeedName) != gardener.SeedName,
		deleted && !controllerutil.ContainsFinalizer(shoot, finalizer):
		return reconcile.Result{}, nil
	case deleted && shoot.Status.UID == "":
		return reconcile.Result{}, c.finalize(ctx, shoot)
	}
	landscape, err := readLandscape(ctx, c.garden, shoot)
	if err != nil {
		return reconcile.Result{}, err
	}
	infos := helper.CalculateControllerInfos(landscape.seed, shoot, clock.RealClock{}, c.config)
	switch {
	case infos.ShouldReconcileNow.Result:
	case infos.ShouldOnlySyncClusterResource && shoot.Status.UID != "":
		return reconcile.Result{}, c.gardenlet.syncCluster(ctx, shoot, landscape)
	default:
		return infos.RequeueAfter, nil
	}
	if !deleted {
		if err := controllerutils.AddFinalizers(ctx, c.garden, shoot, finalizer); err != nil {
			return reconcile.Result{}, fmt.Errorf("add the finalizer: %w", err)
		}
	}
	if err := c.operate(ctx, shoot, infos.OperationType, landscape); err != nil {
		return reconcile.Result{}, err
	}
	if deleted {
		return reconcile.Result{}, c.finalize(ctx, shoot)
	}
	return helper.CalculateControllerInfos(landscape.seed, shoot, clock.RealClock{}, c.config).RequeueAfter, nil
}

// operate runs the operation, and writes to the Shoot how it began, proceeds and ended. An error is
// in the Shoot already.
func (c *controller) operate(ctx context.Context, shoot *gardencorev1beta1.Shoot, operation gardencorev1beta1.LastOperationType, landscape landscape) error {
	if err := c.begin(ctx, shoot, operation); err != nil {
		return err
	}
	c.event(shoot, corev1.EventTypeNormal, gardencorev1beta1.EventReconciling, string(operation)+" of the Shoot cluster begins")
	err := c.runFlow(ctx, shoot, operation, landscape)
	if ctx.Err() != nil {
		return context.Cause(ctx) // this process ends; the next one marks the operation as aborted
	}
	if err != nil {
		c.event(shoot, corev1.EventTypeWarning, gardencorev1beta1.EventReconcileError, err.Error())
		return errors.Join(err, c.fail(ctx, shoot, err))
	}
	c.event(shoot, corev1.EventTypeNormal, gardencorev1beta1.EventReconciled, string(operation)+" of the Shoot cluster succeeded")
	if err := c.succeed(ctx, shoot); err != nil {
		return err
	}
	if operation == gardencorev1beta1.LastOperationTypeDelete {
		return nil
	}
	return c.gardenlet.syncCluster(ctx, shoot, landscape)
}

func (c *controller) runFlow(ctx context.Context, shoot *gardencorev1beta1.Shoot, operation gardencorev1beta1.LastOperationType, landscape landscape) error {
	defer debug.FreeOSMemory() // copies of gardener-node-agent took 300 MiB of an idle process
	o, err := c.gardenlet.prepare(ctx, c.gardenlet.adapt(shoot), landscape)
	if err != nil {
		return fmt.Errorf("prepare the operation: %w", err)
	}
	if shoot.Status.UID == "" { // tells that the deletion has something to delete
		patch := client.MergeFrom(shoot.DeepCopy())
		shoot.Status.UID = shoot.UID
		if err := c.garden.Status().Patch(ctx, shoot, patch); err != nil {
			return fmt.Errorf("write the UID of shoot %s: %w", client.ObjectKeyFromObject(shoot), err)
		}
	}
	if err := c.gardenlet.syncCluster(ctx, shoot, landscape); err != nil {
		return err
	}
	p := process{newGraph: reconcileGraph}
	switch {
	case v1beta1helper.ShootNeedsForceDeletion(shoot):
		p.newGraph = forceDeleteGraph
	case operation == gardencorev1beta1.LastOperationTypeDelete:
		p.newGraph = deleteGraph
	default:
		if err := gardener.Poll(ctx, extensionsTimeout, "not all required extensions are ready", o.RequiredExtensionsReady); err != nil {
			return err
		}
	}
	return o.run(ctx, p, flow.Opts{
		Log: o.Logger, ErrorCleaner: o.CleanShootTaskError,
		ProgressReporter: flow.NewDelayingProgressReporter(clock.RealClock{}, o.ReportShootProgress, reportPeriod),
	})
}

// begin writes that the operation begins, starts the rotations that the annotation
// gardener.cloud/operation requests, and removes these from the annotation.
func (c *controller) begin(ctx context.Context, shoot *gardencorev1beta1.Shoot, operation gardencorev1beta1.LastOperationType) error {
	patch := client.StrategicMergeFrom(shoot.DeepCopy())
	status := &shoot.Status
	if status.RetryCycleStartTime == nil || shoot.Generation != status.ObservedGeneration ||
		status.LastOperation == nil || status.LastOperation.Type != operation {
		status.RetryCycleStartTime = now()
	}
	status.TechnicalID = Namespace(shoot.Name)
	if operation != gardencorev1beta1.LastOperationTypeDelete {
		status.SeedName = shoot.Spec.SeedName
	}
	status.Gardener, status.ObservedGeneration = *gardener.Identity(), shoot.Generation
	status.Gardener.Version = version.Get().GitVersion // see gardener.Ldflags
	begin(shoot, process{operation: operation})
	requests := v1beta1helper.GetShootGardenerOperations(shoot.Annotations)
	left := slices.DeleteFunc(slices.Clone(requests), func(name string) bool { return beginRequested(shoot, name) })
	if err := c.garden.Status().Patch(ctx, shoot, patch); err != nil {
		return fmt.Errorf("write that the operation on shoot %s begins: %w", client.ObjectKeyFromObject(shoot), err)
	}
	if len(left) == len(requests) {
		return nil
	}
	metadata := client.MergeFrom(shoot.DeepCopy())
	shoot.Annotations[v1beta1constants.GardenerOperation] = strings.Join(left, v1beta1constants.GardenerOperationsSeparator)
	if len(left) == 0 {
		delete(shoot.Annotations, v1beta1constants.GardenerOperation)
	}
	if err := c.garden.Patch(ctx, shoot, metadata); err != nil {
		return fmt.Errorf("remove the operation from the annotation of shoot %s: %w", client.ObjectKeyFromObject(shoot), err)
	}
	return nil
}

// fail writes that the operation failed. It will be retried unless an error has a code that
// gardenlet does not retry, or the RetryDuration is over. Then the Shoot is Failed.
func (c *controller) fail(ctx context.Context, shoot *gardencorev1beta1.Shoot, err error) error {
	patch := client.StrategicMergeFrom(shoot.DeepCopy())
	description := v1beta1helper.FormatLastErrDescription(err)
	causes := err
	if ofTasks := flow.Errors(err); ofTasks != nil {
		causes = ofTasks
	}
	status, last := &shoot.Status, shoot.Status.LastOperation
	status.LastErrors = v1beta1helper.NewWrappedLastErrors(description, causes).LastErrors
	last.State, last.LastUpdateTime = gardencorev1beta1.LastOperationStateError, *now()
	if v1beta1helper.HasNonRetryableErrorCode(status.LastErrors...) || utils.HasTimeElapsed(status.RetryCycleStartTime, c.config.RetryDuration.Duration) {
		last.State, status.RetryCycleStartTime = gardencorev1beta1.LastOperationStateFailed, nil
	} else {
		description += " Operation will be retried."
	}
	last.Description = description
	if err := c.garden.Status().Patch(ctx, shoot, patch); err != nil {
		return fmt.Errorf("write the error of shoot %s: %w", client.ObjectKeyFromObject(shoot), err)
	}
	return nil
}

// succeed writes that the operation succeeded. The care controller then checks the conditions
// again.
func (c *controller) succeed(ctx context.Context, shoot *gardencorev1beta1.Shoot) error {
	patch := client.StrategicMergeFrom(shoot.DeepCopy())
	status := &shoot.Status
	for i, condition := range status.Conditions {
		if condition.Status != gardencorev1beta1.ConditionFalse {
			status.Conditions[i].Status, status.Conditions[i].LastUpdateTime = gardencorev1beta1.ConditionProgressing, *now()
		}
	}
	status.RetryCycleStartTime, status.LastErrors = nil, nil
	succeed(shoot)
	if err := c.garden.Status().Patch(ctx, shoot, patch); err != nil {
		return fmt.Errorf("write the success of shoot %s: %w", client.ObjectKeyFromObject(shoot), err)
	}
	return nil
}

// finalize removes the finalizer of a Shoot that has nothing in the seed anymore.
func (c *controller) finalize(ctx context.Context, shoot *gardencorev1beta1.Shoot) error {
	if err := controllerutils.RemoveFinalizers(ctx, c.garden, shoot, finalizer); err != nil {
		return fmt.Errorf("remove the finalizer of shoot %s: %w", client.ObjectKeyFromObject(shoot), err)
	}
	return nil
}

func (c *controller) event(shoot *gardencorev1beta1.Shoot, severity, reason, text string) {
	c.events.Eventf(shoot, nil, severity, reason, gardencorev1beta1.EventActionReconcile, "%s", text)
}
