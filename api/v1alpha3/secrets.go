package v1alpha3

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Keys and limits of referenced Secrets.
const (
	KeyUsername = "username"
	KeyPassword = "password"
	KeyCABundle = "bundle.crt"
	// The keys of a Secret with an access key of AWS. The last two are optional.
	KeyAccessKeyID     = "accessKeyID"
	KeySecretAccessKey = "secretAccessKey"
	KeySessionToken    = "sessionToken"
	KeyRoleARN         = "roleARN"
	// MaxCABundleSize is the maximum size of a CA bundle in bytes. Nodes store it several times.
	MaxCABundleSize = 64 * 1024
	// MaxCABundlesSize is the maximum size of all results of CABundle together, in bytes. A Secret
	// that two caches refer to counts twice. All bundles are in one line of a systemd unit, and in one
	// Secret for gardener-node-agent. Each of the two is limited to 1 MiB (systemd.syntax(7)).
	MaxCABundlesSize = 256 * 1024
)

// validateSecret checks the requirements for every referenced Secret. The Secret must be immutable,
// so that its content cannot change after the check. A rotation must refer to another Secret.
func validateSecret(secret *corev1.Secret, path *field.Path, required []string, optional ...string) field.ErrorList {
	var errs field.ErrorList
	if secret.Immutable == nil || !*secret.Immutable {
		errs = append(errs, invalidSecret(secret, path, "must be immutable (immutable: true); to rotate it, refer to a new Secret"))
	}
	for _, key := range required {
		if _, ok := secret.Data[key]; !ok {
			errs = append(errs, invalidSecret(secret, path, fmt.Sprintf("lacks the key %q", key)))
		}
	}
	keys := slices.Concat(required, optional)
	for _, key := range slices.Sorted(maps.Keys(secret.Data)) {
		if !slices.Contains(keys, key) {
			errs = append(errs, invalidSecret(secret, path,
				fmt.Sprintf("must have no keys other than %s, but has %q", strings.Join(keys, ", "), key)))
		}
	}
	return errs
}

func invalidSecret(secret *corev1.Secret, path *field.Path, reason string) *field.Error {
	return field.Invalid(path, field.OmitValueType{}, fmt.Sprintf("the Secret %s %s", qualified(secret.Namespace, secret.Name), reason))
}

// qualified returns namespace/name, or only the name if the namespace is empty.
func qualified(namespace, name string) string {
	return strings.TrimPrefix(namespace+"/"+name, "/")
}
