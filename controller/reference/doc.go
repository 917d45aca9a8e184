// Package reference resolves what a RegistryConfig refers to by the name of an entry of the Shoot's spec.resources: the
// Secrets that gardenlet copies into the shoot's namespace of the seed.
//
// What such a Secret must hold is known to package v1alpha3, what it is used for to package cache.
package reference
