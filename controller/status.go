package controller

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

// decodeStatus returns the providerStatus, empty when there is none yet.
func decodeStatus(ex *extensionsv1alpha1.Extension) (*v1alpha3.RegistryStatus, error) {
	if ex.Status.ProviderStatus == nil {
		return &v1alpha3.RegistryStatus{}, nil
	}
	status, err := v1alpha3.DecodeStatus(ex.Status.ProviderStatus.Raw)
	if err != nil {
		return nil, fmt.Errorf("providerStatus of extension %s: %w", client.ObjectKeyFromObject(ex), err)
	}
	return status, nil
}

func newStatus(caches []v1alpha3.RegistryCacheStatus) *v1alpha3.RegistryStatus {
	return &v1alpha3.RegistryStatus{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha3.SchemeGroupVersion.String(), Kind: "RegistryStatus"},
		Caches:   caches,
	}
}

// forget writes the kept caches to the providerStatus if others were in it. It is called between cleaning the nodes and
// deleting the caches, so that neither a retry cleans again nor the webhook tells a node about a cache that goes.
func (a *Actuator) forget(
	ctx context.Context, ex *extensionsv1alpha1.Extension,
	status *v1alpha3.RegistryStatus, kept []v1alpha3.RegistryCacheStatus,
) error {
	if len(kept) == len(status.Caches) {
		return nil
	}
	return a.setStatus(ctx, ex, newStatus(kept))
}

// setStatus writes the providerStatus, or removes it if status is nil.
func (a *Actuator) setStatus(ctx context.Context, ex *extensionsv1alpha1.Extension, status *v1alpha3.RegistryStatus) error {
	patch := client.MergeFrom(ex.DeepCopy())
	ex.Status.ProviderStatus = nil
	if status != nil {
		raw, err := json.Marshal(status)
		if err != nil {
			return fmt.Errorf("encoding the providerStatus: %w", err)
		}
		ex.Status.ProviderStatus = &runtime.RawExtension{Raw: raw}
	}
	if err := a.client.Status().Patch(ctx, ex, patch); err != nil {
		return fmt.Errorf("writing the providerStatus of extension %s: %w", client.ObjectKeyFromObject(ex), err)
	}
	return nil
}
