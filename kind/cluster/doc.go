// Package cluster manages one kind cluster of the testbed and its nodes. It creates the cluster
// with kind's library, or verifies an existing one and rebuilds it if it is broken. It then adds
// what kind does not provide: the pod network, and the testbed's CA in the nodes' trust store.
//
// Configurations for kind and files for nodes are pure functions of their inputs. Other packages
// contain what is specific to Gardener, upstream registries or the content of clusters. The package
// never touches the user's own kubeconfig.
package cluster
