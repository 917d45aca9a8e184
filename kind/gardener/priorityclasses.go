package gardener

import (
	"context"
	"fmt"

	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// InstallPriorityClasses creates the priority classes in the shoot that gardenlet's shoot system component creates
// and that system pods of extensions may use.
func InstallPriorityClasses(ctx context.Context, shoot client.Client) error {
	if err := apply(ctx, shoot, priorityClasses()...); err != nil {
		return fmt.Errorf("install the shoot's priority classes: %w", err)
	}
	return nil
}

// priorityClasses returns the classes with the values of gardener's pkg/component/shoot/system.
func priorityClasses() []client.Object {
	return []client.Object{
		priorityClass(v1beta1constants.PriorityClassNameShootSystem900, 999999900),
		priorityClass(v1beta1constants.PriorityClassNameShootSystem800, 999999800),
		priorityClass(v1beta1constants.PriorityClassNameShootSystem700, 999999700),
		priorityClass(v1beta1constants.PriorityClassNameShootSystem600, 999999600),
	}
}

func priorityClass(name string, value int32) *schedulingv1.PriorityClass {
	return &schedulingv1.PriorityClass{
		TypeMeta:    metav1.TypeMeta{APIVersion: schedulingv1.SchemeGroupVersion.String(), Kind: "PriorityClass"},
		ObjectMeta:  metav1.ObjectMeta{Name: name},
		Description: "PriorityClass for Shoot system components",
		Value:       value,
	}
}
