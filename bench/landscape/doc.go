// Package landscape fills a seed with what gardenlet writes for N shoots that use the extension:
// namespaces, Clusters, kubeconfigs, Extensions and OperatingSystemConfigs, each about as large as
// in production. A stand-in replaces the N gardener-resource-managers of the shoots.
//
// One API server serves as the API server of every shoot. All shoots cache the same upstreams, so
// it has the one set of Services that each shoot would have. Every shoot has a kubeconfig with its
// own CA bundle, so that no two shoots share a connection.
//
// It must not know what is measured.
package landscape
