// Package volume does with the claims of caches what Kubernetes does not: it grows them, because
// claim templates are immutable; it deletes those of replicas that a cache no longer has; and it
// replaces volumes on the disks of deleted nodes, which would stay bound. In the shoot it changes
// only claims with the labels of a cache, and their pods.
//
// The caller decides when, and deploys the StatefulSets.
package volume
