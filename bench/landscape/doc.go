// Package landscape creates on a seed the objects that gardenlet writes for N shoots with the
// extension: namespaces, Clusters, kubeconfigs, Extensions and OperatingSystemConfigs, each about
// as large as in production. A stand-in replaces the N gardener-resource-managers of the shoots.
//
// All shoots have the same API server and cache the same upstreams, so they also share the
// Services. Every shoot has a kubeconfig with its own CA bundle, so that no two shoots share a
// connection.
//
// The package must contain no measurements.
package landscape
