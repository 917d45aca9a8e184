package controller

import (
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	corev1 "k8s.io/api/core/v1"
)

// tell records an Event on the Extension about something that happens once and needs no retry. What
// lasts is in conditions and in lastError. docs/observability.md has all reasons.
func (a *Actuator) tell(ex *extensionsv1alpha1.Extension, kind, reason, note string, args ...any) {
	a.events.Eventf(ex, nil, kind, reason, gardencorev1beta1.EventActionReconcile, note, args...)
}

// announce records the result of a clean-up, which the conditions contain.
func (a *Actuator) announce(ex *extensionsv1alpha1.Extension, conditions []gardencorev1beta1.Condition) {
	for _, condition := range conditions {
		kind := corev1.EventTypeNormal
		if condition.Status != gardencorev1beta1.ConditionTrue {
			kind = corev1.EventTypeWarning
		}
		a.tell(ex, kind, condition.Reason, "%s", condition.Message)
	}
}
