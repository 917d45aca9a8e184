// Package gardenlet drives one shoot of the testbed through gardenlet's flows, in the place of a gardenlet.
//
// gardenlet itself cannot run here, since there is no gardener-apiserver. What it does for the parts that an extension
// sees is not written anew: the tasks of the flows are methods of gardenlet's own Botanist and components, called in the
// order and with the dependencies of gardenlet's flows (pkg/gardenlet/controller/shoot/shoot of the Gardener module). The
// steps that concern neither extensions nor nodes (infrastructure, etcd, API server, network, DNS and so on) are left out,
// because kind brings them. gardenlet's waits are shortened (interval.go, namespace.go), and gardener-resource-manager is asked to
// hurry while a flow runs. Three things are emulated: the Worker, by starting and stopping kind nodes, the garden
// cluster, by an in-memory client, and the API server of a shoot that sleeps, by a kubeconfig that leads nowhere.
//
// It must not know what any extension does, nor how clusters and nodes come into being.
package gardenlet
