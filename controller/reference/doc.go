// Package reference resolves the references of a RegistryConfig. Each reference names an entry of
// the Shoot's spec.resources. gardenlet copies its Secret into the shoot's namespace of the seed.
//
// Package v1alpha3 validates the content of such a Secret, package cache uses it.
package reference
