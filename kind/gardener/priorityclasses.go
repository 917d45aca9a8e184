package gardener

import (
	"context"
	"fmt"

	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// InstallPriorityClasses creates the priority classes of gardenlet's shoot system component in the
// shoot. System pods of extensions may use them.
func InstallPriorityClasses(ctx context.Context, shoot client.Client) error {
	if err := apply(ctx, shoot, priorityClasses()...); err != nil {
		return fmt.Errorf("install the shoot's priority classes: %w", err)
	}
	return nil
}

// InstallSeedPriorityClasses creates the priority classes of gardenlet's seed system component in
// the seed. Pods of extensions may use them.
func InstallSeedPriorityClasses(ctx context.Context, seed client.Client) error {
	if err := apply(ctx, seed, seedPriorityClasses()...); err != nil {
		return fmt.Errorf("install the seed's priority classes: %w", err)
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

// seedPriorityClasses returns the classes with the values of gardener's pkg/component/seed/system.
func seedPriorityClasses() []client.Object {
	return []client.Object{
		priorityClass(v1beta1constants.PriorityClassNameSeedSystem900, 999998900),
		priorityClass(v1beta1constants.PriorityClassNameSeedSystem800, 999998800),
		priorityClass(v1beta1constants.PriorityClassNameSeedSystem700, 999998700),
		priorityClass(v1beta1constants.PriorityClassNameSeedSystem600, 999998600),
	}
}

func priorityClass(name string, value int32) *schedulingv1.PriorityClass {
	return &schedulingv1.PriorityClass{
		TypeMeta:    metav1.TypeMeta{APIVersion: schedulingv1.SchemeGroupVersion.String(), Kind: "PriorityClass"},
		ObjectMeta:  metav1.ObjectMeta{Name: name},
		Description: "PriorityClass for system components",
		Value:       value,
	}
}
