package shoot

import (
	"context"
	"fmt"
	"strings"

	v1beta1helper "github.com/gardener/gardener/pkg/api/core/v1beta1/helper"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

// Secrets returns the Secret with the key. It returns an error that satisfies apierrors.IsNotFound
// if the Secret does not exist, and nil without an error if the Secret is unknown and must not be
// checked.
type Secrets func(ctx context.Context, key client.ObjectKey) (*corev1.Secret, error)

var oneLine = strings.NewReplacer("\r", "", "\n", " ")

// checkReferences checks that every reference of config leads to a valid Secret in the namespace of
// the Shoot.
func checkReferences(
	ctx context.Context, shoot *gardencorev1beta1.Shoot, config *v1alpha3.RegistryConfig, path *field.Path, secrets Secrets,
) field.ErrorList {
	var errs field.ErrorList
	bundles := map[string][]byte{}
	for _, reference := range v1alpha3.References(config) {
		if reference.Name == "" {
			continue // Validate reports it
		}
		secret, invalid := checkReference(ctx, shoot, reference, secrets)
		errs = append(errs, below(path, invalid)...)
		if secret != nil && reference.Kind == v1alpha3.ReferenceCABundle {
			bundles[reference.Upstream] = v1alpha3.CABundle(secret)
		}
	}
	return append(errs, below(path, v1alpha3.ValidateCABundles(config, bundles))...)
}

// checkReference returns the Secret that the reference leads to, or nil if it is missing or
// unknown, and all errors.
func checkReference(
	ctx context.Context, shoot *gardencorev1beta1.Shoot, reference v1alpha3.Reference, secrets Secrets,
) (*corev1.Secret, field.ErrorList) {
	var to autoscalingv1.CrossVersionObjectReference
	if entry := v1beta1helper.GetResourceByName(shoot.Spec.Resources, reference.Name); entry != nil {
		to = entry.ResourceRef
	}
	if errs := reference.ValidateEntry(to); len(errs) > 0 {
		return nil, errs
	}
	key := client.ObjectKey{Namespace: shoot.Namespace, Name: to.Name}
	secret, err := secrets(ctx, key)
	switch {
	case apierrors.IsNotFound(err):
		return nil, reference.Missing(key.Namespace, key.Name)
	case err != nil:
		return nil, field.ErrorList{field.InternalError(reference.Path, fmt.Errorf("the Secret %s cannot be read, try again: %w", key, err))}
	case secret == nil:
		return nil, nil
	}
	return secret, reference.Validate(secret)
}
