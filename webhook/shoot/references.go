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

// Secrets returns the Secret that a Shoot refers to. An error for which apierrors.IsNotFound holds says that there is
// none. No Secret and no error says that it cannot be known here: then nothing is demanded of it.
type Secrets func(ctx context.Context, key client.ObjectKey) (*corev1.Secret, error)

var oneLine = strings.NewReplacer("\r", "", "\n", " ")

// checkReferences checks that every reference of config leads to a Secret in the namespace of the Shoot that holds what it
// is for.
func checkReferences(
	ctx context.Context, shoot *gardencorev1beta1.Shoot, config *v1alpha3.RegistryConfig, path *field.Path, secrets Secrets,
) field.ErrorList {
	var errs field.ErrorList
	bundles := map[string][]byte{}
	for _, reference := range v1alpha3.References(config) {
		if reference.Name == "" {
			continue // Validate has said so
		}
		secret, mistakes := checkReference(ctx, shoot, reference, secrets)
		errs = append(errs, below(path, mistakes)...)
		if secret != nil && reference.Kind == v1alpha3.ReferenceCABundle {
			bundles[reference.Upstream] = v1alpha3.CABundle(secret)
		}
	}
	return append(errs, below(path, v1alpha3.ValidateCABundles(config, bundles))...)
}

// checkReference returns the Secret that a reference leads to, nil if there is none or if it cannot be known, and what is
// wrong with either.
func checkReference(
	ctx context.Context, shoot *gardencorev1beta1.Shoot, reference v1alpha3.Reference, secrets Secrets,
) (*corev1.Secret, field.ErrorList) {
	var to autoscalingv1.CrossVersionObjectReference
	if entry := v1beta1helper.GetResourceByName(shoot.Spec.Resources, reference.Name); entry != nil {
		to = entry.ResourceRef
	}
	if mistakes := reference.ValidateEntry(to); len(mistakes) > 0 {
		return nil, mistakes
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
