package gardenlet

import (
	"context"
	"fmt"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"github.com/gardener/gardener/pkg/utils/flow"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// process is what is done to a shoot: an operation, and the flow that does it.
type process struct {
	newGraph func(tasks) *flow.Graph
	// operation is the type of the operation; empty means the one that follows from the shoot.
	operation gardencorev1beta1.LastOperationType
	// rotation is the phase of the rotation of the certificate authorities that the operation begins, if any.
	rotation gardencorev1beta1.CredentialsRotationPhase
}

// Reconcile creates or updates the shoot and returns when its extensions are ready and every node has applied its
// operating system config. Machines that another flow stopped are started again, as fresh ones. A shoot whose
// spec.hibernation is enabled is brought to sleep, see Hibernate. One without worker pools has no machines.
//
// A failed flow is run again like gardenlet does, with a growing pause, Attempts times at most, unless an error has a code
// that gardenlet does not retry (such as ERR_CONFIGURATION_PROBLEM) or the context ends. The error names each failed task
// of the last run and its cause. The shoot passed in is not changed.
func (g *Gardenlet) Reconcile(ctx context.Context, shoot *gardencorev1beta1.Shoot) error {
	return g.run(ctx, shoot, process{newGraph: reconcileGraph})
}

// Hibernate brings the shoot to sleep, or creates it asleep: extensions are reconciled while the nodes still run, the
// machines are stopped and their nodes deleted, gardener-resource-manager is stopped. kind's API server and controllers go
// on, but extensions cannot reach them until WakeUp. Retries and errors are those of Reconcile.
func (g *Gardenlet) Hibernate(ctx context.Context, shoot *gardencorev1beta1.Shoot) error {
	return g.Reconcile(ctx, hibernated(shoot, true))
}

// WakeUp is Reconcile for a shoot that sleeps: its machines come back as fresh ones.
func (g *Gardenlet) WakeUp(ctx context.Context, shoot *gardencorev1beta1.Shoot) error {
	return g.Reconcile(ctx, hibernated(shoot, false))
}

// RotateCA runs a phase of the rotation of the certificate authorities, Preparing or Completing, and returns when it is over:
// the shoot's status then shows Prepared or Completed, in the Cluster resource too. Extensions rotate in step with it; the
// authorities of the shoot's API server belong to kind and stay. gardenlet replaces all machines in the first phase; here
// their nodes get the new operating system config in place. Retries and errors are those of Reconcile.
func (g *Gardenlet) RotateCA(ctx context.Context, shoot *gardencorev1beta1.Shoot, phase gardencorev1beta1.CredentialsRotationPhase) error {
	p, err := rotated(phase)
	if err != nil {
		return fmt.Errorf("shoot %s: %w", client.ObjectKeyFromObject(shoot), err)
	}
	return g.run(ctx, shoot, p)
}

// Migrate prepares the shoot for its move to another seed and returns when its namespace and Cluster resource are gone: the
// state of its extensions is saved in the garden, everything in the shoot stays, its machines go on. Restore is what must
// follow: in the same process where the garden is in memory, after Leave in any one where it outlives the process
// (gardener.OpenGarden). Retries and errors are those of Reconcile.
func (g *Gardenlet) Migrate(ctx context.Context, shoot *gardencorev1beta1.Shoot) error {
	return g.run(ctx, shoot, process{newGraph: migrateGraph, operation: gardencorev1beta1.LastOperationTypeMigrate})
}

// Restore brings a migrated shoot up on its new seed, with the saved state of its extensions, and returns when Reconcile
// would. There is one seed cluster: a fresh namespace stands for the other seed. A shoot that was not migrated is an error.
// Retries and errors are those of Reconcile.
func (g *Gardenlet) Restore(ctx context.Context, shoot *gardencorev1beta1.Shoot) error {
	return g.run(ctx, shoot, process{newGraph: reconcileGraph, operation: gardencorev1beta1.LastOperationTypeRestore})
}

// Delete deletes the shoot and returns when its namespace is gone: machines first, then operating system configs,
// gardenlet's ManagedResources, extensions, and everything else. It fails if a ManagedResource for the shoot is left
// then. The disks of the machines are left as they are until the next Reconcile. Deleting a shoot that does not exist
// succeeds. Retries and errors are those of Reconcile.
func (g *Gardenlet) Delete(ctx context.Context, shoot *gardencorev1beta1.Shoot) error {
	return g.run(ctx, deleted(shoot), process{newGraph: deleteGraph})
}

// ForceDelete deletes all that the seed has of the shoot, as gardenlet does for a shoot that a user has annotated with
// confirmation.gardener.cloud/force-deletion, and returns when its namespace is gone. Nothing is done in the shoot, whose
// API server would be gone now, nor with its machines, which a user has to remove by hand: here both go on, and the next
// Reconcile takes over what it finds. Retries and errors are those of Reconcile.
func (g *Gardenlet) ForceDelete(ctx context.Context, shoot *gardencorev1beta1.Shoot) error {
	shoot = deleted(shoot)
	metav1.SetMetaDataAnnotation(&shoot.ObjectMeta, v1beta1constants.AnnotationConfirmationForceDeletion, "true")
	return g.run(ctx, shoot, process{newGraph: forceDeleteGraph})
}

// deleted returns the shoot as the garden shows it after a user has deleted it.
func deleted(shoot *gardencorev1beta1.Shoot) *gardencorev1beta1.Shoot {
	shoot = shoot.DeepCopy()
	if shoot.DeletionTimestamp == nil {
		shoot.DeletionTimestamp = now()
	}
	return shoot
}

// hibernated returns the shoot with spec.hibernation.enabled as given.
func hibernated(shoot *gardencorev1beta1.Shoot, enabled bool) *gardencorev1beta1.Shoot {
	shoot = shoot.DeepCopy()
	shoot.Spec.Hibernation = &gardencorev1beta1.Hibernation{Enabled: ptr.To(enabled)}
	return shoot
}
