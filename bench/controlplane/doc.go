// Package controlplane runs an API server and its etcd as processes of this machine, with
// controller-runtime's envtest, and counts the requests of chosen users in the audit log.
//
// It must not know what Gardener is.
package controlplane
