package gardenlet

import (
	"context"
	"fmt"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/extensions"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Stage is the state of a shoot between two operations.
type Stage string

// Stages of a shoot.
const (
	// StageAbsent: the shoot is neither on the seed nor being migrated.
	StageAbsent Stage = "absent"
	// StagePresent: it was created or reconciled, even unsuccessfully. It may be hibernated.
	StagePresent Stage = "present"
	// StageMigrating: its migration has started and not ended.
	StageMigrating Stage = "migrating"
	// StageMigrated: it has left the seed, and its state is in the garden.
	StageMigrated Stage = "migrated"
	// StageRestoring: its restoration has started and not succeeded.
	StageRestoring Stage = "restoring"
	// StageDeleting: its deletion has started and not ended.
	StageDeleting Stage = "deleting"
)

// Find returns the shoot as the last operation of any process left it, and its stage. It reads the
// Cluster resource, or the garden for a migrated shoot. An absent shoot is nil.
func (g *Gardenlet) Find(ctx context.Context) (*gardencorev1beta1.Shoot, Stage, error) {
	shoot, err := FindOnSeed(ctx, g.Seed.Client(), g.Name)
	if err != nil {
		return nil, "", err
	}
	saved, err := g.saved(ctx)
	if err != nil {
		return nil, "", err
	}
	if shoot == nil && saved != nil {
		return saved, StageMigrated, nil
	}
	return shoot, StageOf(shoot), nil
}

// FindOnSeed returns the shoot with that name from its Cluster resource, as extensions see it; nil
// if there is none.
func FindOnSeed(ctx context.Context, seed client.Reader, name string) (*gardencorev1beta1.Shoot, error) {
	namespace := Namespace(name)
	cluster, err := extensions.GetCluster(ctx, seed, namespace)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read cluster %s of the last operation: %w", namespace, err)
	}
	return cluster.Shoot, nil
}

// StageOf returns the stage of a shoot that FindOnSeed returned. It may be nil.
func StageOf(shoot *gardencorev1beta1.Shoot) Stage {
	if shoot == nil {
		return StageAbsent
	}
	last := shoot.Status.LastOperation
	switch {
	case last == nil:
		return StagePresent
	case last.Type == gardencorev1beta1.LastOperationTypeMigrate:
		return StageMigrating
	case last.Type == gardencorev1beta1.LastOperationTypeRestore && last.State != gardencorev1beta1.LastOperationStateSucceeded:
		return StageRestoring
	case last.Type == gardencorev1beta1.LastOperationTypeDelete:
		return StageDeleting
	}
	return StagePresent
}

// saved returns the migrated shoot from the garden; nil unless its ShootState is there too.
func (g *Gardenlet) saved(ctx context.Context) (*gardencorev1beta1.Shoot, error) {
	key := client.ObjectKey{Namespace: ProjectNamespace, Name: g.Name}
	shoot := &gardencorev1beta1.Shoot{}
	for _, object := range []client.Object{&gardencorev1beta1.ShootState{}, shoot} {
		err := g.Garden.Get(ctx, key, object)
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read shoot %s in the garden: %w", key, err)
		}
	}
	return shoot, nil
}

// StoreForMigration prepares the garden for the migration of the shoot: it stores the shoot and
// removes the state of an earlier migration. Restore can then follow in another process, if the
// garden outlives this one (gardener.OpenGarden).
func (g *Gardenlet) StoreForMigration(ctx context.Context, shoot *gardencorev1beta1.Shoot) error {
	if err := g.DeleteStored(ctx); err != nil {
		return err
	}
	shoot = shoot.DeepCopy()
	shoot.ResourceVersion = ""
	if err := g.Garden.Create(ctx, shoot); err != nil {
		return fmt.Errorf("create shoot %s in the garden: %w", client.ObjectKeyFromObject(shoot), err)
	}
	return nil
}

// DeleteStored deletes from the garden what StoreForMigration and a migration stored. Missing
// objects are no error.
func (g *Gardenlet) DeleteStored(ctx context.Context) error {
	name := metav1.ObjectMeta{Namespace: ProjectNamespace, Name: g.Name}
	for _, object := range []client.Object{&gardencorev1beta1.ShootState{ObjectMeta: name}, &gardencorev1beta1.Shoot{ObjectMeta: name}} {
		if err := g.Garden.Delete(ctx, object); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete shoot %s from the garden: %w", client.ObjectKeyFromObject(object), err)
		}
	}
	return nil
}
