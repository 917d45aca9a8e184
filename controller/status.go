package controller

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1beta1helper "github.com/gardener/gardener/pkg/api/core/v1beta1/helper"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

func newStatus(caches []v1alpha3.RegistryCacheStatus, bundle []byte) *v1alpha3.RegistryStatus {
	status := &v1alpha3.RegistryStatus{TypeMeta: typeMeta("RegistryStatus"), Caches: caches}
	if len(bundle) > 0 {
		text := string(bundle)
		status.CABundle = &text
	}
	return status
}

func typeMeta(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: v1alpha3.SchemeGroupVersion.String(), Kind: kind}
}

// write writes the record and the conditions to the Extension's status in one request, or in none
// if nothing changes. providerStatus and state belong together: a reader with only one of them
// would clean too much or too little.
func (a *Actuator) write(
	ctx context.Context, ex *extensionsv1alpha1.Extension, r record, conditions ...gardencorev1beta1.Condition,
) error {
	before := ex.DeepCopy()
	current, err := recordOf(ex)
	if err != nil {
		return err
	}
	if !equality.Semantic.DeepEqual(current.status, r.status) {
		ex.Status.ProviderStatus = nil
		if r.status != nil {
			if ex.Status.ProviderStatus, err = encoded(r.status); err != nil {
				return fmt.Errorf("encoding the providerStatus: %w", err)
			}
		}
	}
	if state := r.state(); !equality.Semantic.DeepEqual(current.state(), state) {
		ex.Status.State = nil
		if state != nil {
			if ex.Status.State, err = encoded(state); err != nil {
				return fmt.Errorf("encoding the state: %w", err)
			}
		}
	}
	ex.Status.Conditions = v1beta1helper.MergeConditions(ex.Status.Conditions, conditions...)
	return a.patchStatus(ctx, ex, before)
}

// patchStatus writes the changes of the status since before. It sends no request if there are none.
func (a *Actuator) patchStatus(ctx context.Context, ex, before *extensionsv1alpha1.Extension) error {
	if equality.Semantic.DeepEqual(before.Status, ex.Status) {
		return nil
	}
	if err := a.client.Status().Patch(ctx, ex, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("writing the status of Extension %s: %w", client.ObjectKeyFromObject(ex), err)
	}
	return nil
}

// clearRecord removes the record from the Extension's status and writes the conditions.
func (a *Actuator) clearRecord(ctx context.Context, ex *extensionsv1alpha1.Extension, conditions ...gardencorev1beta1.Condition) error {
	before := ex.DeepCopy()
	ex.Status.ProviderStatus, ex.Status.State = nil, nil
	ex.Status.Conditions = v1beta1helper.MergeConditions(ex.Status.Conditions, conditions...)
	return a.patchStatus(ctx, ex, before)
}

func encoded(object any) (*runtime.RawExtension, error) {
	raw, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	return &runtime.RawExtension{Raw: raw}, nil
}
