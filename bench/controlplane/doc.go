// Package controlplane runs an API server and its etcd as processes of this machine, by controller-runtime's envtest, and lets
// the API server record what one user asks for.
//
// It must not know what Gardener is.
package controlplane
