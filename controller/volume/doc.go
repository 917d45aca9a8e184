// Package volume does what Kubernetes does not do for the volumes of caches: it grows the claims of
// a StatefulSet, whose template is immutable, and replaces volumes on the disk of a deleted node.
// It works directly in the shoot, only on claims with the labels of a cache.
//
// The package does not know who requests another size or how a StatefulSet is deployed.
package volume
