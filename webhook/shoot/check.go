package shoot

import (
	"context"
	"fmt"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

var extensionsPath = field.NewPath("spec", "extensions")

// Check validates what a Shoot configures for the extension, and returns all errors with their
// paths in the Shoot. If old is not nil, it is an update: Check also validates the transition, and
// returns nil unless the update changes the extension's configuration, a referenced resource, or
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
		return below(path, v1alpha3.DecodeErrors(err))
	}
	before := appliedConfig(old)
	if before != nil {
		before = copySizes(config, before, cachesThatCannotGrow(old))
	}
	errs := below(path, v1alpha3.ValidateUpdate(config, before))
	return append(errs, checkReferences(ctx, shoot, config, path, secrets)...)
}

// below prefixes the paths of errs with path.
func below(path *field.Path, errs field.ErrorList) field.ErrorList {
	for i, err := range errs {
		copied := *err
		if copied.Field == "" {
			copied.Field = path.String()
		} else {
			copied.Field = path.String() + "." + copied.Field
		}
		errs[i] = &copied
	}
	return errs
}

// appliedConfig returns the config of the old Shoot. It returns nil if there is no old Shoot, if
// the extension was disabled in it (no cache runs), or if its config cannot be decoded (it was
// never applied).
func appliedConfig(old *gardencorev1beta1.Shoot) *v1alpha3.RegistryConfig {
	if old == nil {
		return nil
	}
	config, err := v1alpha3.DecodeConfig(providerConfig(old))
	if err != nil {
		return nil
	}
	return config
}

// extensionIndices returns the indices in spec.extensions at which the extension is enabled.
func extensionIndices(shoot *gardencorev1beta1.Shoot) []int {
	var indices []int
	for i, extension := range shoot.Spec.Extensions {
		if extension.Type == v1alpha3.ExtensionType && (extension.Disabled == nil || !*extension.Disabled) {
			indices = append(indices, i)
		}
	}
	return indices
}

// providerConfig returns the providerConfig of the first enabled entry, nil if there is none.
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
