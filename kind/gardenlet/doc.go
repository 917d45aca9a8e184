// Package gardenlet drives one shoot of the testbed through gardenlet's flows.
//
// gardenlet itself cannot run here, since there is no gardener-apiserver. The parts that affect an
// extension are not rewritten: the flows' tasks are methods of gardenlet's own Botanist and
// components, called in the order and with the dependencies of gardenlet's flows
// (pkg/gardenlet/controller/shoot/shoot of the Gardener module). Steps that concern neither
// extensions nor nodes (infrastructure, etcd, API server, network, DNS and so on) are left out,
// because kind provides them. The package polls more often than gardenlet (tasks.go), and makes
// gardener-resource-manager requeue deletions while a flow runs. Three things are emulated: the
// Worker, by starting and stopping kind nodes; the garden cluster, by an in-memory client; and the
// stopped API server of a hibernated shoot, by a kubeconfig that reaches nothing.
//
// The package contains no code for a particular extension, and it creates no clusters or nodes.
package gardenlet
