// Package reference resolves the references of a RegistryConfig. Each names an entry of the Shoot's
// spec.resources, whose Secret gardenlet copies into the shoot's namespace of the seed.
//
// Package v1alpha3 knows what such a Secret must contain, package cache knows how it is used.
package reference
