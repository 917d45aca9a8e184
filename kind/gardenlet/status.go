package gardenlet

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	v1beta1helper "github.com/gardener/gardener/pkg/api/core/v1beta1/helper"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/gardener-extensions/registry-cache/kind/gardener"
)

// complete returns a copy of the shoot with the defaults of gardener-apiserver. Its status comes
// from the Cluster resource, and shows the operation that starts.
func (g *Gardenlet) complete(ctx context.Context, shoot *gardencorev1beta1.Shoot, p process) (*gardencorev1beta1.Shoot, error) {
	shoot = g.withDefaults(shoot)
	last, err := g.onSeed(ctx)
	if err != nil {
		return nil, err
	}
	shoot.CreationTimestamp = *now()
	if last != nil {
		shoot.Status, shoot.CreationTimestamp = last.Status, last.CreationTimestamp
	}
	shoot.Status.TechnicalID, shoot.Status.UID, shoot.Status.SeedName = Namespace(shoot.Name), shoot.UID, shoot.Spec.SeedName
	shoot.Status.Gardener = gardencorev1beta1.Gardener{Name: "gardenlet", Version: gardener.Version}
	shoot.Status.ObservedGeneration = shoot.Generation
	begin(shoot, p)
	return shoot, nil
}

// Settled reports whether the last operation successfully created or reconciled the shoot with the
// given spec, and no rotation is in progress. It detects neither later changes by others, nor
// whether another reconciliation would change anything.
func (g *Gardenlet) Settled(ctx context.Context, shoot *gardencorev1beta1.Shoot) (bool, error) {
	last, err := g.onSeed(ctx)
	if err != nil || last == nil || !settled(&last.Status) {
		return false, err
	}
	return sameSpec(last, g.withDefaults(shoot))
}

// settled reports what Settled reports, but does not compare specs.
func settled(status *gardencorev1beta1.ShootStatus) bool {
	last := ptr.Deref(status.LastOperation, gardencorev1beta1.LastOperation{})
	phase := v1beta1helper.GetShootCARotationPhase(status.Credentials)
	return last.State == gardencorev1beta1.LastOperationStateSucceeded && (phase == "" || phase == gardencorev1beta1.RotationCompleted) &&
		(last.Type == gardencorev1beta1.LastOperationTypeCreate || last.Type == gardencorev1beta1.LastOperationTypeReconcile)
}

// withDefaults returns a copy of the shoot with the defaults that a garden's API server would set:
// the version, IP families and number of machines of the cluster that serves as the shoot.
func (g *Gardenlet) withDefaults(shoot *gardencorev1beta1.Shoot) *gardencorev1beta1.Shoot {
	shoot = shoot.DeepCopy()
	shoot.Spec.Kubernetes.Version = cmp.Or(shoot.Spec.Kubernetes.Version, g.Shoot.Version())
	if networking := shoot.Spec.Networking; networking != nil && len(g.IPFamilies) > 0 {
		networking.IPFamilies = slices.Clone(g.IPFamilies)
		if g.IPFamilies[0] == gardencorev1beta1.IPFamilyIPv6 {
			networking.Pods, networking.Services = ptr.To(podNetworkIPv6), ptr.To(serviceNetworkIPv6)
		}
	}
	for i := range shoot.Spec.Provider.Workers {
		if count := int32(len(g.Machines)); count > 0 {
			shoot.Spec.Provider.Workers[i].Minimum, shoot.Spec.Provider.Workers[i].Maximum = count, count
		}
	}
	return shoot
}

// sameSpec reports whether the specs are equal as JSON: the API server sorts providerConfigs.
func sameSpec(a, b *gardencorev1beta1.Shoot) (bool, error) {
	var specs [2]map[string]any
	for i, spec := range []*gardencorev1beta1.ShootSpec{&a.Spec, &b.Spec} {
		var err error
		if specs[i], err = runtime.DefaultUnstructuredConverter.ToUnstructured(spec); err != nil {
			return false, fmt.Errorf("encode the spec of shoot %s: %w", a.Name, err)
		}
	}
	return equality.Semantic.DeepEqual(specs[0], specs[1]), nil
}

func begin(shoot *gardencorev1beta1.Shoot, p process) {
	operation := p.operation
	if operation == "" {
		operation = v1beta1helper.ComputeOperationType(shoot.ObjectMeta, shoot.Status.LastOperation)
		if operation == gardencorev1beta1.LastOperationTypeMigrate {
			operation = gardencorev1beta1.LastOperationTypeReconcile // this ends an interrupted migration
		}
	}
	shoot.Status.LastOperation = &gardencorev1beta1.LastOperation{
		Type:           operation,
		State:          gardencorev1beta1.LastOperationStateProcessing,
		Description:    "Operation on the Shoot cluster in progress.",
		LastUpdateTime: *now(),
	}
	if p.rotation != "" {
		beginRotation(shoot, caCredential, p.rotation)
	}
}

// succeed changes the status as gardenlet does after a successful flow.
func succeed(shoot *gardencorev1beta1.Shoot) {
	last := shoot.Status.LastOperation
	last.State, last.Progress, last.LastUpdateTime = gardencorev1beta1.LastOperationStateSucceeded, 100, *now()
	last.Description = "Shoot cluster has been successfully reconciled."
	if last.Type == gardencorev1beta1.LastOperationTypeDelete {
		last.Description = "Shoot cluster has been successfully deleted."
	}
	shoot.Status.IsHibernated = v1beta1helper.HibernationIsEnabled(shoot) && last.Type != gardencorev1beta1.LastOperationTypeDelete
	finishRotations(shoot)
}

func (o *shootOperation) finish(ctx context.Context, flowErr error) error {
	shoot := o.Shoot.GetInfo().DeepCopy()
	last := shoot.Status.LastOperation
	if flowErr != nil {
		last.State, last.Progress, last.Description, last.LastUpdateTime = gardencorev1beta1.LastOperationStateError, 50, flowErr.Error(), *now()
		return o.sync(ctx, shoot)
	}
	if last.Type == gardencorev1beta1.LastOperationTypeDelete || last.Type == gardencorev1beta1.LastOperationTypeMigrate {
		return nil
	}
	succeed(shoot)
	if err := o.sync(ctx, shoot); err != nil {
		return err
	}
	if last.Type == gardencorev1beta1.LastOperationTypeRestore {
		return o.deleteShootState(ctx)
	}
	return nil
}

// sync writes the Cluster resource with the shoot, as gardenlet does.
func (o *shootOperation) sync(ctx context.Context, shoot *gardencorev1beta1.Shoot) error {
	o.Shoot.SetInfo(shoot)
	return o.gardenlet.syncCluster(ctx, shoot, landscape{seed: o.Seed.GetInfo(), cloudProfile: o.Shoot.CloudProfile})
}
