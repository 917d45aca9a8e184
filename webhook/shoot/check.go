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
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

var extensionsPath = field.NewPath("spec", "extensions")

// Check validates what a Shoot configures for the extension, and returns all errors with their
// paths in the Shoot. If old is not nil, Check also validates the update from old to shoot, and
// returns nil unless the update changes the extension's configuration or a referenced resource, or
// removes all workers. A Shoot that is being deleted, or in which the extension is disabled, is
// always valid. A Secret that cannot be read is an error of type InternalError.
func Check(ctx context.Context, shoot, old *gardencorev1beta1.Shoot, secrets Secrets) field.ErrorList {
	if shoot.DeletionTimestamp != nil {
		return nil
	}
	indices := extensionIndices(shoot)
	if len(indices) == 0 || old != nil && !relevantChange(shoot, old) {
		return nil
	}
	first := extensionsPath.Index(indices[0])
	var errs field.ErrorList
	for _, index := range indices[1:] {
		errs = append(errs, field.Duplicate(extensionsPath.Index(index).Child("type"), v1alpha3.ExtensionType))
	}
	if len(shoot.Spec.Provider.Workers) == 0 {
		errs = append(errs, field.Forbidden(first.Child("type"), "caches run on the nodes of the Shoot, but it has no workers"))
	}
	return append(errs, checkConfig(ctx, shoot, old, first.Child("providerConfig"), secrets)...)
}

func checkConfig(ctx context.Context, shoot, old *gardencorev1beta1.Shoot, path *field.Path, secrets Secrets) field.ErrorList {
	raw := providerConfig(shoot)
	if len(raw) == 0 {
		return field.ErrorList{field.Required(path, "must list the caches")}
	}
	config, err := v1alpha3.DecodeConfig(raw)
	if err != nil {
		return prefixPaths(path, v1alpha3.DecodeErrors(err))
	}
	// The recorded identities are on the seed. Only the controller finds a suffix that gives the name
	// of a cache which still ends with a hash, but would no longer need it.
	errs := prefixPaths(path, v1alpha3.ValidateUpdate(config, appliedConfig(old), nil))
	return append(errs, checkReferences(ctx, shoot, config, path, secrets)...)
}

// prefixPaths returns errs with path in front of their paths.
func prefixPaths(path *field.Path, errs field.ErrorList) field.ErrorList {
	for i, err := range errs {
		copied := *err
		copied.Field = strings.TrimSuffix(path.String()+"."+copied.Field, ".") // an error about the entire document has no field
		errs[i] = &copied
	}
	return errs
}

// appliedConfig returns the config of the old Shoot. It returns nil if there is no old Shoot, if
// the extension was disabled in it, or if its config is invalid and so was never applied.
func appliedConfig(old *gardencorev1beta1.Shoot) *v1alpha3.RegistryConfig {
	if old == nil {
		return nil
	}
	config, _ := v1alpha3.DecodeConfig(providerConfig(old))
	return config
}

func extensionIndices(shoot *gardencorev1beta1.Shoot) []int {
	var indices []int
	for i, extension := range shoot.Spec.Extensions {
		if extension.Type == v1alpha3.ExtensionType && !ptr.Deref(extension.Disabled, false) {
			indices = append(indices, i)
		}
	}
	return indices
}

// providerConfig returns the providerConfig of the first enabled entry, or nil if there is none.
func providerConfig(shoot *gardencorev1beta1.Shoot) []byte {
	indices := extensionIndices(shoot)
	if len(indices) == 0 {
		return nil
	}
	return configOf(shoot.Spec.Extensions[indices[0]])
}

func configOf(extension gardencorev1beta1.Extension) []byte {
	if extension.ProviderConfig == nil {
		return nil
	}
	return extension.ProviderConfig.Raw
}

// Text returns err as one line: <field path>: <error>.
func Text(err *field.Error) string {
	return fmt.Sprintf("%s: %s", err.Field, oneLine.Replace(err.ErrorBody()))
}

// Secrets returns the Secret with the key. For a missing Secret it returns an error that satisfies
// apierrors.IsNotFound. If it returns nil without an error, the Secret is unknown and not checked.
type Secrets func(ctx context.Context, key client.ObjectKey) (*corev1.Secret, error)

var oneLine = strings.NewReplacer("\r", "", "\n", " ")

// checkReferences checks that every reference of config leads to a valid Secret of the Shoot.
func checkReferences(
	ctx context.Context, shoot *gardencorev1beta1.Shoot, config *v1alpha3.RegistryConfig, path *field.Path, secrets Secrets,
) field.ErrorList {
	var errs field.ErrorList
	bundles := map[string][]byte{}
	for _, reference := range v1alpha3.References(config) {
		if reference.Name == "" {
			continue // v1alpha3.Validate rejects an empty name
		}
		secret, invalid := checkReference(ctx, shoot, reference, secrets)
		errs = append(errs, prefixPaths(path, invalid)...)
		if secret != nil && reference.Kind == v1alpha3.ReferenceCABundle {
			bundles[reference.Upstream] = v1alpha3.CABundle(secret)
		}
	}
	return append(errs, prefixPaths(path, v1alpha3.ValidateCABundles(config, bundles))...)
}

// checkReference returns the referenced Secret, or nil if it is missing or unknown, and all errors.
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
