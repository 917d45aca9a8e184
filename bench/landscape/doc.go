// Package landscape fills a seed with what gardenlet writes for N shoots that use the extension: namespaces, Clusters, accesses,
// Extensions, OperatingSystemConfigs, each of about the size that they have in production. It also stands in for the
// gardener-resource-managers of the shoots, of which there would be N.
//
// One API server is the API server of every shoot. All shoots cache the same upstreams, so it has one set of Services, as
// each shoot would; every shoot's kubeconfig has a CA bundle of its own, so that no two share a connection.
//
// It must not know what is measured.
package landscape
