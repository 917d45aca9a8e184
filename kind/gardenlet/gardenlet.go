package gardenlet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	v1beta1helper "github.com/gardener/gardener/pkg/api/core/v1beta1/helper"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	"github.com/gardener/gardener/pkg/utils/flow"
	gardenerutils "github.com/gardener/gardener/pkg/utils/gardener"
	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/kind/gardener"
)

const (
	attempts = 3 // the maximum number of runs of a flow
	// firstPause is the pause before the second run of a failed flow. The next pause is twice as long.
	firstPause = 2 * time.Second
)

// Gardenlet drives a shoot. It is stateless: flows read the result of earlier flows from the
// Cluster resource in the seed. Only one flow may run at a time.
type Gardenlet struct {
	Name string // the name of its shoot; flows refuse other shoots
	// Seed is the seed cluster, and Shoot is the cluster that serves as the shoot.
	Seed, Shoot kubernetes.Interface
	// ShootKubeconfig is for pods of the seed and nodes of the shoot. Its credentials are inline.
	ShootKubeconfig []byte
	// Garden is a client for the garden: ControllerRegistrations, and the targets of spec.resources.
	Garden client.Client
	// ResourceManagerImage is an image of gardener-resource-manager that is on the seed's node.
	ResourceManagerImage string
	NodeAgentBinary      gardener.Binary // the gardener-node-agent for the machines
	Machines             []Machine       // the members of the shoot's only worker pool; may be empty
	// IPFamilies are the IP families of the shoot's cluster, the primary one first. Empty means the
	// families in the Shoot.
	IPFamilies []gardencorev1beta1.IPFamily
	Log        logr.Logger // receives the logs of Gardener's components; the zero value discards them
	// Remote means that Garden is a real garden, for which a process runs Manage. Each operation then
	// only changes the Shoot in the garden, and waits until that process has reported its end.
	Remote bool

	pause time.Duration // replaces firstPause unless it is 0
}

// run runs the flow of p until it succeeds or must not be retried, but at most `attempts` times.
func (g *Gardenlet) run(ctx context.Context, shoot *gardencorev1beta1.Shoot, p process) error {
	if g.Remote {
		return g.request(ctx, shoot, p)
	}
	backoff := wait.Backoff{Duration: cmp.Or(g.pause, firstPause), Factor: 2, Steps: attempts}
	var flowErr error
	err := wait.ExponentialBackoffWithContext(ctx, backoff, func(ctx context.Context) (bool, error) {
		flowErr = g.runOnce(ctx, shoot, p)
		return flowErr == nil || willNotRetry(flowErr), nil
	})
	if flowErr != nil {
		return flowErr
	}
	return err
}

// runOnce runs the flow once, with gardenlet's bookkeeping: the Cluster resource shows the
// operation before, during and after the flow.
func (g *Gardenlet) runOnce(ctx context.Context, shoot *gardencorev1beta1.Shoot, p process) error {
	o, err := g.prepareFor(ctx, shoot, p)
	if err != nil {
		return fmt.Errorf("prepare the operation on shoot %s: %w", client.ObjectKeyFromObject(shoot), err)
	}
	if err := o.sync(ctx, o.Shoot.GetInfo()); err != nil {
		return err
	}
	flowErr := o.run(ctx, p, flow.Opts{Log: o.Logger})
	if ctx.Err() != nil {
		return errors.Join(flowErr, context.Cause(ctx))
	}
	if err := o.finish(ctx, flowErr); err != nil {
		return errors.Join(flowErr, err)
	}
	return flowErr
}

// prepareFor completes the Shoot and prepares its operation, with the landscape of a testbed
// without a garden.
func (g *Gardenlet) prepareFor(ctx context.Context, shoot *gardencorev1beta1.Shoot, p process) (*shootOperation, error) {
	shoot, err := g.complete(ctx, shoot, p)
	if err != nil {
		return nil, err
	}
	return g.prepare(ctx, shoot, landscape{
		seed: gardener.NewSeed(), cloudProfile: cloudProfile(), internalDomain: &gardenerutils.Domain{Domain: "internal.test"},
	})
}

// run runs the flow of p.
func (o *shootOperation) run(ctx context.Context, p process, options flow.Opts) error {
	defer gardener.RequeueDeletions(ctx, o.SeedClientSet.Client(), o.Shoot.ControlPlaneNamespace)()
	return p.newGraph(o.tasks()).Compile().Run(ctx, options)
}

// willNotRetry reports whether gardenlet gives up after this error of a flow.
func willNotRetry(err error) bool {
	taskErrors := flow.Errors(err)
	if taskErrors == nil {
		return false
	}
	return v1beta1helper.HasNonRetryableErrorCode(v1beta1helper.NewWrappedLastErrors("", taskErrors).LastErrors...)
}

// process describes an operation on a shoot: its flow, its type and, in a CA rotation, its phase.
type process struct {
	newGraph  func(tasks) *flow.Graph
	operation gardencorev1beta1.LastOperationType // computed from the shoot if empty
	// rotation is the phase of the CA rotation that the operation starts, if any.
	rotation gardencorev1beta1.CredentialsRotationPhase
}

// Reconcile creates or updates the shoot, and returns when its extensions are ready and every node
// has applied its operating system config. Machines that an earlier flow stopped start as new ones.
// A shoot with spec.hibernation.enabled is hibernated (see Hibernate).
//
// As gardenlet does, Reconcile retries a failed flow with exponential backoff, up to three runs. It
// does not retry if ctx ends or an error has a code that gardenlet does not retry, such as
// ERR_CONFIGURATION_PROBLEM. The error names each failed task of the last run.
func (g *Gardenlet) Reconcile(ctx context.Context, shoot *gardencorev1beta1.Shoot) error {
	return g.run(ctx, shoot, process{newGraph: reconcileGraph})
}

// Hibernate hibernates the shoot, or creates it hibernated: it reconciles extensions, stops the
// machines, deletes their nodes, and stops gardener-resource-manager. kind's API server continues
// to run, but extensions cannot reach it until WakeUp. Hibernate retries and fails as Reconcile
// does.
func (g *Gardenlet) Hibernate(ctx context.Context, shoot *gardencorev1beta1.Shoot) error {
	return g.Reconcile(ctx, withHibernation(shoot, true))
}

// WakeUp calls Reconcile with hibernation disabled. The shoot's machines start as new machines.
func (g *Gardenlet) WakeUp(ctx context.Context, shoot *gardencorev1beta1.Shoot) error {
	return g.Reconcile(ctx, withHibernation(shoot, false))
}

// RotateCA runs a phase of the CA rotation, Preparing or Completing. On success, the shoot's status
// in the Cluster resource shows the phase Prepared or Completed. Extensions rotate their CAs. The
// CAs of the shoot's API server are kind's and do not change. gardenlet replaces all machines in
// the first phase; here nodes are updated in place. RotateCA retries and fails as Reconcile does.
func (g *Gardenlet) RotateCA(ctx context.Context, shoot *gardencorev1beta1.Shoot, phase gardencorev1beta1.CredentialsRotationPhase) error {
	return g.run(ctx, shoot, process{newGraph: reconcileGraph, rotation: phase})
}

// Migrate prepares the shoot for its move to another seed, and returns when its namespace and
// Cluster resource are gone. The state of its extensions is saved in the garden. The shoot's
// objects and machines remain. Restore must follow, in this process if the garden is in memory.
// Migrate retries and fails as Reconcile does.
func (g *Gardenlet) Migrate(ctx context.Context, shoot *gardencorev1beta1.Shoot) error {
	return g.run(ctx, shoot, process{newGraph: migrateGraph, operation: gardencorev1beta1.LastOperationTypeMigrate})
}

// Restore restores a migrated shoot on its new seed with the saved state of its extensions. It
// waits for the same conditions as Reconcile. Since the testbed has only one seed, a new namespace
// represents the new seed. Restore fails for a shoot that was not migrated. It retries and fails as
// Reconcile does.
func (g *Gardenlet) Restore(ctx context.Context, shoot *gardencorev1beta1.Shoot) error {
	return g.run(ctx, shoot, process{newGraph: reconcileGraph, operation: gardencorev1beta1.LastOperationTypeRestore})
}

// Delete deletes the shoot and returns when its namespace is gone. It deletes machines, then
// operating system configs, gardenlet's ManagedResources, extensions, and finally everything else.
// It fails if a ManagedResource for the shoot outlives the extensions. The machines' disks are kept
// until the next Reconcile. If the shoot does not exist, Delete succeeds. It retries and fails as
// Reconcile does.
func (g *Gardenlet) Delete(ctx context.Context, shoot *gardencorev1beta1.Shoot) error {
	return g.run(ctx, markDeleted(shoot), process{newGraph: deleteGraph})
}

// ForceDelete deletes all objects of the shoot from the seed, as gardenlet does for the annotation
// confirmation.gardener.cloud/force-deletion, and returns when the shoot's namespace is gone. The
// objects and machines in the shoot remain, and the next Reconcile adopts them. ForceDelete retries
// and fails as Reconcile does.
//
// A Remote gardenlet does not force-delete.
func (g *Gardenlet) ForceDelete(ctx context.Context, shoot *gardencorev1beta1.Shoot) error {
	shoot = markDeleted(shoot)
	metav1.SetMetaDataAnnotation(&shoot.ObjectMeta, v1beta1constants.AnnotationConfirmationForceDeletion, "true")
	return g.run(ctx, shoot, process{newGraph: forceDeleteGraph})
}

// markDeleted returns the shoot as the garden shows it after a user has deleted it.
func markDeleted(shoot *gardencorev1beta1.Shoot) *gardencorev1beta1.Shoot {
	shoot = shoot.DeepCopy()
	if shoot.DeletionTimestamp == nil {
		shoot.DeletionTimestamp = now()
	}
	return shoot
}

func withHibernation(shoot *gardencorev1beta1.Shoot, enabled bool) *gardencorev1beta1.Shoot {
	shoot = shoot.DeepCopy()
	shoot.Spec.Hibernation = &gardencorev1beta1.Hibernation{Enabled: ptr.To(enabled)}
	return shoot
}
