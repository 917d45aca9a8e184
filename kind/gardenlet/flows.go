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

// process is an operation on a shoot and its flow.
type process struct {
	newGraph func(tasks) *flow.Graph
	// operation is the type of the operation. Empty means the one that follows from the shoot.
	operation gardencorev1beta1.LastOperationType
	// rotation is the phase of the CA rotation that the operation starts, if any.
	rotation gardencorev1beta1.CredentialsRotationPhase
}

// Reconcile creates or updates the shoot, and returns when its extensions are ready and every node
// has applied its operating system config. Machines that another flow stopped are started as new
// ones. A shoot with spec.hibernation.enabled is hibernated, see Hibernate. A shoot without worker
// pools has no machines.
//
// Like gardenlet, it retries a failed flow with exponential backoff, up to Attempts runs. It does
// not retry if the context ends or an error has a code that gardenlet does not retry, such as
// ERR_CONFIGURATION_PROBLEM. The error names each failed task of the last run and its cause. shoot
// is not changed.
func (g *Gardenlet) Reconcile(ctx context.Context, shoot *gardencorev1beta1.Shoot) error {
	return g.run(ctx, shoot, process{newGraph: reconcileGraph})
}

// Hibernate hibernates the shoot, or creates it hibernated: it reconciles extensions while the
// nodes still run, stops the machines, deletes their nodes, and stops gardener-resource-manager.
// kind's API server and controllers continue, but extensions cannot reach them until WakeUp. It
// retries and fails like Reconcile.
func (g *Gardenlet) Hibernate(ctx context.Context, shoot *gardencorev1beta1.Shoot) error {
	return g.Reconcile(ctx, hibernated(shoot, true))
}

// WakeUp is Reconcile for a hibernated shoot: its machines start as new ones.
func (g *Gardenlet) WakeUp(ctx context.Context, shoot *gardencorev1beta1.Shoot) error {
	return g.Reconcile(ctx, hibernated(shoot, false))
}

// RotateCA runs a phase of the CA rotation, Preparing or Completing. On success the shoot's status
// shows Prepared or Completed, in the Cluster resource too. Extensions rotate their CAs in step;
// the CAs of the shoot's API server belong to kind and stay. gardenlet replaces all machines in the
// first phase; here their nodes get the new operating system config in place. It retries and fails
// like Reconcile.
func (g *Gardenlet) RotateCA(ctx context.Context, shoot *gardencorev1beta1.Shoot, phase gardencorev1beta1.CredentialsRotationPhase) error {
	p, err := rotated(phase)
	if err != nil {
		return fmt.Errorf("shoot %s: %w", client.ObjectKeyFromObject(shoot), err)
	}
	return g.run(ctx, shoot, p)
}

// Migrate prepares the shoot for its move to another seed, and returns when its namespace and
// Cluster resource are gone. The state of its extensions is saved in the garden; everything in the
// shoot and its machines stay. Restore must follow: in the same process if the garden is in memory,
// or, after StoreForMigration, in any process if the garden outlives this one
// (gardener.OpenGarden). It retries and fails like Reconcile.
func (g *Gardenlet) Migrate(ctx context.Context, shoot *gardencorev1beta1.Shoot) error {
	return g.run(ctx, shoot, process{newGraph: migrateGraph, operation: gardencorev1beta1.LastOperationTypeMigrate})
}

// Restore restores a migrated shoot on its new seed with the saved state of its extensions, and
// returns when Reconcile would. The testbed has only one seed: a new namespace stands for the other
// one. It fails for a shoot that was not migrated. It retries and fails like Reconcile.
func (g *Gardenlet) Restore(ctx context.Context, shoot *gardencorev1beta1.Shoot) error {
	return g.run(ctx, shoot, process{newGraph: reconcileGraph, operation: gardencorev1beta1.LastOperationTypeRestore})
}

// Delete deletes the shoot and returns when its namespace is gone: machines first, then operating
// system configs, gardenlet's ManagedResources, extensions, and everything else. It fails if a
// ManagedResource for the shoot is left after that. The machines' disks stay until the next
// Reconcile. Deleting a shoot that does not exist succeeds. It retries and fails like Reconcile.
func (g *Gardenlet) Delete(ctx context.Context, shoot *gardencorev1beta1.Shoot) error {
	return g.run(ctx, deleted(shoot), process{newGraph: deleteGraph})
}

// ForceDelete deletes everything of the shoot in the seed, like gardenlet does for a shoot with the
// annotation confirmation.gardener.cloud/force-deletion, and returns when its namespace is gone. It
// changes neither the shoot's objects, whose API server would be gone, nor its machines, which a
// user would have to remove. Here both continue, and the next Reconcile takes over what it finds.
// It retries and fails like Reconcile.
func (g *Gardenlet) ForceDelete(ctx context.Context, shoot *gardencorev1beta1.Shoot) error {
	shoot = deleted(shoot)
	metav1.SetMetaDataAnnotation(&shoot.ObjectMeta, v1beta1constants.AnnotationConfirmationForceDeletion, "true")
	return g.run(ctx, shoot, process{newGraph: forceDeleteGraph})
}

// deleted returns the shoot as the garden shows it after a user deleted it.
func deleted(shoot *gardencorev1beta1.Shoot) *gardencorev1beta1.Shoot {
	shoot = shoot.DeepCopy()
	if shoot.DeletionTimestamp == nil {
		shoot.DeletionTimestamp = now()
	}
	return shoot
}

// hibernated returns the shoot with the given spec.hibernation.enabled.
func hibernated(shoot *gardencorev1beta1.Shoot, enabled bool) *gardencorev1beta1.Shoot {
	shoot = shoot.DeepCopy()
	shoot.Spec.Hibernation = &gardencorev1beta1.Hibernation{Enabled: ptr.To(enabled)}
	return shoot
}
