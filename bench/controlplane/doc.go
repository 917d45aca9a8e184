// Package controlplane runs an API server and its etcd as processes of this machine, with
// controller-runtime's envtest, and counts the requests of chosen users in the audit log.
//
// The package must not import packages of Gardener.
package controlplane
