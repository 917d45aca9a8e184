// Package volume does to the volumes of caches what Kubernetes does not: it grows the claims of a StatefulSet, whose
// template cannot be changed, and gives up those whose volume is on the disk of a node that is gone. It works in the shoot
// directly, on the claims with the labels of a cache alone.
//
// It does not know where a wish for another size comes from, nor how a StatefulSet is deployed.
package volume
