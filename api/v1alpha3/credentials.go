package v1alpha3

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ecrHosts matches the private registries of Amazon ECR, including those of China and of the
// European Sovereign Cloud, and FIPS endpoints.
var ecrHosts = regexp.MustCompile(`^\d{12}\.dkr\.ecr(-fips)?\.[a-z0-9-]+\.amazonaws\.(com|com\.cn|eu)(:443)?$`)

// IsECR reports whether the upstream is a private registry of Amazon ECR:
// <account>.dkr.ecr.<region>.amazonaws.com. A cache can use an access key for it.
func IsECR(upstream string) bool { return ecrHosts.MatchString(upstream) }

// HasAccessKey reports whether a Secret contains any of the keys for an AWS access key.
func HasAccessKey(secret *corev1.Secret) bool {
	return slices.ContainsFunc([]string{KeyAccessKeyID, KeySecretAccessKey, KeySessionToken, KeyRoleARN}, func(key string) bool {
		_, ok := secret.Data[key]
		return ok
	})
}

// ValidateCredentials checks the Secret that RegistryCache.SecretReferenceName refers to. It must
// be immutable and contain exactly the keys "username" and "password", neither of them blank. A
// user name must not contain white space. With Google's user name _json_key, the password must be
// the JSON key of a service account. Otherwise values may contain any byte.
//
// If IsECR is true for the upstream, the keys may instead be "accessKeyID" and "secretAccessKey",
// and optionally "sessionToken" and "roleARN". Their values must not contain white space.
//
// Errors are reported at path and do not contain the values.
func ValidateCredentials(secret *corev1.Secret, upstream string, path *field.Path) field.ErrorList {
	if !HasAccessKey(secret) {
		return validateLogin(secret, path)
	}
	if !IsECR(upstream) {
		return field.ErrorList{invalidSecret(secret, path, fmt.Sprintf(
			"has an access key of AWS, but %s is not of the form <account>.dkr.ecr.<region>.amazonaws.com: use the keys %s and %s",
			upstream, KeyUsername, KeyPassword))}
	}
	errs := validateSecret(secret, path, []string{KeyAccessKeyID, KeySecretAccessKey}, KeySessionToken, KeyRoleARN)
	for _, key := range []string{KeyAccessKeyID, KeySecretAccessKey, KeySessionToken, KeyRoleARN} {
		errs = append(errs, validateWord(secret, path, key)...)
	}
	if role, ok := secret.Data[KeyRoleARN]; ok && !roles.Match(role) {
		errs = append(errs, invalidSecret(secret, path, fmt.Sprintf("must have a value of the form arn:aws:iam::<account>:role/<name> for the key %q", KeyRoleARN)))
	}
	return errs
}

var roles = regexp.MustCompile(`^arn:aws[a-z-]*:iam::\d{12}:role/\S+$`)

func validateLogin(secret *corev1.Secret, path *field.Path) field.ErrorList {
	errs := validateSecret(secret, path, []string{KeyUsername, KeyPassword})
	errs = append(errs, validateWord(secret, path, KeyUsername)...)
	password, ok := secret.Data[KeyPassword]
	switch {
	case ok && len(bytes.TrimSpace(password)) == 0:
		errs = append(errs, emptyValue(secret, path, KeyPassword))
	case ok && string(secret.Data[KeyUsername]) == "_json_key":
		errs = append(errs, validateServiceAccount(secret, path, password)...)
	}
	return errs
}

// validateWord checks that the value of the key, if set, is not empty and contains no white space.
func validateWord(secret *corev1.Secret, path *field.Path, key string) field.ErrorList {
	value, ok := secret.Data[key]
	switch {
	case ok && len(bytes.TrimSpace(value)) == 0:
		return field.ErrorList{emptyValue(secret, path, key)}
	case bytes.ContainsFunc(value, unicode.IsSpace):
		return field.ErrorList{invalidSecret(secret, path, fmt.Sprintf(
			"has white space in the value of the key %q, perhaps a line break at its end: encode it with printf, not with echo", key))}
	}
	return nil
}

func emptyValue(secret *corev1.Secret, path *field.Path, key string) *field.Error {
	return invalidSecret(secret, path, fmt.Sprintf("has an empty value for the key %q", key))
}

// serviceAccountFields are the fields that a JSON key of Google may contain.
// gardener-extension-registry-cache also refuses others, such as those that make a client read
// files or ask another server.
var serviceAccountFields = []string{
	"type", "project_id", "private_key_id", "private_key", "client_email", "client_id", "auth_uri", "token_uri",
	"auth_provider_x509_cert_url", "client_x509_cert_url", "universe_domain",
}

func validateServiceAccount(secret *corev1.Secret, path *field.Path, key []byte) field.ErrorList {
	fields := map[string]string{}
	if err := json.Unmarshal(key, &fields); err != nil { // err contains a part of the key
		return field.ErrorList{invalidSecret(secret, path, fmt.Sprintf(
			"must have the JSON key of a service account as %q, an object of strings, because the user name is _json_key", KeyPassword))}
	}
	for name := range fields {
		if !slices.Contains(serviceAccountFields, name) {
			return field.ErrorList{invalidSecret(secret, path, fmt.Sprintf(
				"has a JSON key of a service account with other fields than %s", strings.Join(serviceAccountFields, ", ")))}
		}
	}
	return nil
}
