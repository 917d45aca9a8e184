package controller

import (
	"context"

	v1beta1helper "github.com/gardener/gardener/pkg/api/core/v1beta1/helper"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
)

// forget removes the record from the Extension's status, whatever it says, and writes the conditions.
func (a *Actuator) forget(ctx context.Context, ex *extensionsv1alpha1.Extension, conditions ...gardencorev1beta1.Condition) error {
	before := ex.DeepCopy()
	ex.Status.ProviderStatus, ex.Status.State = nil, nil
	ex.Status.Conditions = v1beta1helper.MergeConditions(ex.Status.Conditions, conditions...)
	return a.patchStatus(ctx, ex, before)
}
