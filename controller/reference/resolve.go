// Package reference resolves the references of a RegistryConfig. Each reference names an entry of
// the Shoot's spec.resources. gardenlet copies the entry's Secret to the seed.
//
// Package v1alpha3 validates the content of such a Secret, package cache uses it.
package reference

import (
	"context"
	"fmt"

	extensionscontroller "github.com/gardener/gardener/extensions/pkg/controller"
	v1beta1helper "github.com/gardener/gardener/pkg/api/core/v1beta1/helper"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/controller/cache"
	"github.com/gardener-extensions/registry-cache/controller/retry"
)

// Resolve returns the Secrets to which the config refers, by upstream. It looks them up in
// resources, the Shoot's spec.resources. Each Secret is read once, directly from the shoot's
// namespace. The ErrorList contains what the owner of the Shoot must fix: entries that are missing
// or do not refer to a Secret, and Secrets with invalid content. The error reports a failed read or
// a missing Secret. At most one of the two is not nil.
//
// The caller should wait for a missing Secret. When a Shoot refers to another Secret,
// gardener-resource-manager deletes the old copy, retries after 5 seconds, and only then creates
// the new one (v1.150.0, managedresource controller: "Deletion is still pending"). By then
// gardenlet has already triggered the extension.
func Resolve(
	ctx context.Context, seed client.Client, namespace string,
	resources []gardencorev1beta1.NamedResourceReference, config *v1alpha3.RegistryConfig,
) (map[string]cache.Secrets, field.ErrorList, error) {
	resolved := map[string]cache.Secrets{}
	read := map[string]*corev1.Secret{}
	var mistakes field.ErrorList
	var missing error
	for _, reference := range v1alpha3.References(config) {
		var to autoscalingv1.CrossVersionObjectReference
		if entry := v1beta1helper.GetResourceByName(resources, reference.Name); entry != nil {
			to = entry.ResourceRef
		}
		if invalid := reference.ValidateEntry(to); len(invalid) > 0 {
			mistakes = append(mistakes, invalid...)
			continue
		}
		secret := read[reference.Name]
		if secret == nil {
			secret = &corev1.Secret{}
			err := extensionscontroller.GetObjectByReference(ctx, seed, &to, namespace, secret)
			if apierrors.IsNotFound(err) {
				missing = retry.Waiting(fmt.Errorf("gardenlet has not copied the Secret %s, to which %s refers, to the seed yet", to.Name, reference.Path))
				continue
			}
			if err != nil {
				return nil, nil, fmt.Errorf("read the Secret that %s refers to: %w", reference.Path, err)
			}
			read[reference.Name] = secret
		}
		mistakes = append(mistakes, reference.Validate(secret)...)
		secrets := resolved[reference.Upstream]
		add(&secrets, reference.Kind, secret)
		resolved[reference.Upstream] = secrets
	}
	bundles := map[string][]byte{}
	for upstream, secrets := range resolved {
		bundles[upstream] = secrets.CABundle
	}
	if mistakes = append(mistakes, v1alpha3.ValidateCABundles(config, bundles)...); len(mistakes) > 0 {
		return nil, mistakes, nil
	}
	if missing != nil {
		return nil, nil, missing
	}
	return resolved, nil, nil
}

func add(secrets *cache.Secrets, kind v1alpha3.ReferenceKind, secret *corev1.Secret) {
	switch {
	case kind == v1alpha3.ReferenceCABundle:
		secrets.CABundle = v1alpha3.CABundle(secret)
	case v1alpha3.HasAccessKey(secret):
		secrets.AccessKey = &cache.AccessKey{
			ID:           secret.Data[v1alpha3.KeyAccessKeyID],
			Secret:       secret.Data[v1alpha3.KeySecretAccessKey],
			SessionToken: secret.Data[v1alpha3.KeySessionToken],
			RoleARN:      secret.Data[v1alpha3.KeyRoleARN],
		}
	default:
		secrets.Credentials = &cache.Credentials{Username: secret.Data[v1alpha3.KeyUsername], Password: secret.Data[v1alpha3.KeyPassword]}
	}
}
