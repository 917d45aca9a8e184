// Package reference resolves the references of a RegistryConfig. Each reference names an entry of
// the Shoot's spec.resources. gardenlet copies the entry's Secret to the seed.
//
// Package v1alpha3 validates the content of such a Secret, package cache uses it.
package reference
