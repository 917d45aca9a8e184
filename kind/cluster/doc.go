// Package cluster provides one kind cluster of the testbed and its nodes: created by kind's library, or an existing one
// verified and, where it is broken, built again; then completed by what kind leaves out here: pod network, and the
// testbed's certificate authority in the nodes' trust store.
//
// What is told to kind and written to nodes are functions of values. The package must not know Gardener, upstream
// registries or what runs in the clusters, and it never touches the user's own kubeconfig.
package cluster
