// Package storage holds the objects of a cluster's default StorageClass: rancher's local-path-provisioner, with the names
// and the directory that kind's own images use for it.
//
// All of it is values: nothing is applied here, and nothing is known of how the cluster came to be.
package storage
