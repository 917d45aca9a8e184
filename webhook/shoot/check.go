package shoot

import (
	"context"
	"fmt"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

var extensionsPath = field.NewPath("spec", "extensions")

// Check returns every mistake of a Shoot that concerns the extension, with its path in the Shoot. With old it is an
// update: then what may follow what is checked too, and nothing at all is checked unless the extension, a reference of it
// or the existence of workers changes. A Shoot that is being deleted, and one in which the extension is disabled, has no
// mistakes. A Secret that cannot be read is a mistake of type InternalError.
func Check(ctx context.Context, shoot, old *gardencorev1beta1.Shoot, secrets Secrets) field.ErrorList {
	if shoot.DeletionTimestamp != nil {
		return nil
	}
	indices := extensionIndices(shoot)
	if len(indices) == 0 || old != nil && !concerns(shoot, old) {
		return nil
	}
	first := extensionsPath.Index(indices[0])
	var errs field.ErrorList
	for _, index := range indices[1:] {
		errs = append(errs, field.Duplicate(extensionsPath.Index(index).Child("type"), v1alpha3.ExtensionType))
	}
	if len(shoot.Spec.Provider.Workers) == 0 {
		errs = append(errs, field.Forbidden(first.Child("type"), "caches run on the nodes of the Shoot, and this Shoot has no workers"))
	}
	return append(errs, checkConfig(ctx, shoot, old, first.Child("providerConfig"), secrets)...)
}

func checkConfig(ctx context.Context, shoot, old *gardencorev1beta1.Shoot, path *field.Path, secrets Secrets) field.ErrorList {
	raw := providerConfig(shoot)
	if len(raw) == 0 {
		return field.ErrorList{field.Required(path, "the caches must be configured")}
	}
	config, err := v1alpha3.DecodeConfig(raw)
	if err != nil {
		return below(path, v1alpha3.DecodeErrors(err))
	}
	before := appliedConfig(old)
	if before != nil {
		before = withSizesOf(config, before, cachesThatCannotGrow(old))
	}
	errs := below(path, v1alpha3.ValidateUpdate(config, before))
	return append(errs, checkReferences(ctx, shoot, config, path, secrets)...)
}

// below puts errors with paths in a document under the path of the document.
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

// appliedConfig returns the config of the old Shoot that still counts: none if there is no old Shoot, if its extension
// was disabled, so that no cache runs, or if its config cannot be decoded, so that none was ever applied.
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

// extensionIndices returns where in spec.extensions the extension is enabled.
func extensionIndices(shoot *gardencorev1beta1.Shoot) []int {
	var indices []int
	for i, extension := range shoot.Spec.Extensions {
		if extension.Type == v1alpha3.ExtensionType && (extension.Disabled == nil || !*extension.Disabled) {
			indices = append(indices, i)
		}
	}
	return indices
}

// providerConfig returns the providerConfig of the first enabled entry, nil without one.
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

// Text returns one line for a mistake: the path of its field, a colon and what is wrong.
func Text(err *field.Error) string {
	return fmt.Sprintf("%s: %s", err.Field, oneLine.Replace(err.ErrorBody()))
}
