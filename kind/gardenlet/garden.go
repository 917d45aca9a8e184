package gardenlet

import (
	"context"
	"fmt"
	"slices"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"github.com/gardener/gardener/pkg/controllerutils"
	"github.com/gardener/gardener/pkg/extensions"
	"github.com/gardener/gardener/pkg/utils/gardener/shootstate"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// StoreSecret creates or replaces a user's Secret in the shoot's project namespace of the garden.
// The stored Secret has the name, labels, annotations, type, immutability and data of wanted. A
// real garden does not replace the data of an immutable Secret. WithSecret makes a shoot refer to
// the Secret; the next flow copies it to the seed.
func (g *Gardenlet) StoreSecret(ctx context.Context, wanted *corev1.Secret) error {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ProjectNamespace, Name: wanted.Name}}
	_, err := controllerutils.GetAndCreateOrMergePatch(ctx, g.Garden, secret, func() error {
		secret.Labels, secret.Annotations = wanted.Labels, wanted.Annotations
		secret.Type, secret.Immutable, secret.Data = wanted.Type, wanted.Immutable, wanted.Data
		return nil
	})
	if err != nil {
		return fmt.Errorf("store secret %s in the garden: %w", client.ObjectKeyFromObject(secret), err)
	}
	return nil
}

// WithSecret returns a copy of the shoot whose spec.resources refer to the garden's Secret.
// resource is the name of the reference, which replaces any other reference of that name.
func WithSecret(shoot *gardencorev1beta1.Shoot, resource, secret string) *gardencorev1beta1.Shoot {
	shoot = shoot.DeepCopy()
	reference := gardencorev1beta1.NamedResourceReference{
		Name:        resource,
		ResourceRef: autoscalingv1.CrossVersionObjectReference{APIVersion: "v1", Kind: "Secret", Name: secret},
	}
	others := slices.DeleteFunc(shoot.Spec.Resources, func(r gardencorev1beta1.NamedResourceReference) bool { return r.Name == resource })
	shoot.Spec.Resources = append(others, reference)
	return shoot
}

// CheckReferences returns an error with the path of the first entry of spec.resources whose Secret
// is not in the garden. A real garden rejects such a Shoot. Here its flow would start and fail.
func (g *Gardenlet) CheckReferences(ctx context.Context, shoot *gardencorev1beta1.Shoot) error {
	for i, resource := range shoot.Spec.Resources {
		if resource.ResourceRef.Kind != "Secret" {
			continue
		}
		key := client.ObjectKey{Namespace: ProjectNamespace, Name: resource.ResourceRef.Name}
		if err := g.Garden.Get(ctx, key, &corev1.Secret{}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("read secret %s in the garden: %w", key, err)
		} else if err != nil {
			return fmt.Errorf("spec.resources[%d]: Secret %s not found in the garden: add it to the file of the Shoot", i, key.Name)
		}
	}
	return nil
}

// Recall stores in the garden what the seed holds of it: the Secrets in spec.resources of the shoot
// and, if its restoration was interrupted, the state of its extensions. A process that starts with
// a garden in memory thus continues where an earlier process ended.
func (g *Gardenlet) Recall(ctx context.Context) error {
	shoot, err := g.onSeed(ctx)
	if err != nil || shoot == nil {
		return err
	}
	for _, resource := range shoot.Spec.Resources {
		if resource.ResourceRef.Kind != "Secret" {
			continue
		}
		found, name := &corev1.Secret{}, resource.ResourceRef.Name
		key := client.ObjectKey{Namespace: Namespace(g.Name), Name: v1beta1constants.ReferencedResourcesPrefix + name}
		if err := g.Seed.Client().Get(ctx, key, found); apierrors.IsNotFound(err) {
			continue // the flow did not get that far
		} else if err != nil {
			return fmt.Errorf("read secret %s on the seed: %w", key, err)
		}
		found.ObjectMeta = metav1.ObjectMeta{Name: name}
		if err := g.StoreSecret(ctx, found); err != nil {
			return err
		}
	}
	if StageOf(shoot) != StageRestoring {
		return nil
	}
	return shootstate.Deploy(ctx, clock.RealClock{}, g.Garden, g.Seed.Client(), shoot, Namespace(g.Name), false)
}

// Stage is the state of a shoot between two operations.
type Stage string

// Stages of a shoot.
const (
	StageAbsent    Stage = "absent"    // the shoot is not on the seed
	StagePresent   Stage = "present"   // its creation was at least attempted; it may be hibernated
	StageMigrating Stage = "migrating" // its migration has started but not ended
	StageRestoring Stage = "restoring" // its restoration has started but not succeeded
	StageDeleting  Stage = "deleting"  // its deletion has started but not ended
)

// Find returns the shoot as the last operation of any process left it, from a real garden or else
// from the Cluster resource. An absent shoot is returned as nil.
func (g *Gardenlet) Find(ctx context.Context) (*gardencorev1beta1.Shoot, error) {
	if g.Remote {
		return g.stored(ctx)
	}
	return g.onSeed(ctx)
}

// onSeed returns the shoot in its Cluster resource, as extensions see it, or nil.
func (g *Gardenlet) onSeed(ctx context.Context) (*gardencorev1beta1.Shoot, error) {
	cluster, err := extensions.GetCluster(ctx, g.Seed.Client(), Namespace(g.Name))
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read cluster %s of the last operation: %w", Namespace(g.Name), err)
	}
	return cluster.Shoot, nil
}

// StageOf returns the stage of a shoot that Find returned. The shoot may be nil.
func StageOf(shoot *gardencorev1beta1.Shoot) Stage {
	if shoot == nil {
		return StageAbsent
	}
	last := ptr.Deref(shoot.Status.LastOperation, gardencorev1beta1.LastOperation{})
	switch {
	case last.Type == gardencorev1beta1.LastOperationTypeMigrate:
		return StageMigrating
	case last.Type == gardencorev1beta1.LastOperationTypeRestore && last.State != gardencorev1beta1.LastOperationStateSucceeded:
		return StageRestoring
	case last.Type == gardencorev1beta1.LastOperationTypeDelete:
		return StageDeleting
	}
	return StagePresent
}
