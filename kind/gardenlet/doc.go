// Package gardenlet drives one shoot of the testbed through gardenlet's flows.
//
// gardenlet itself cannot run here: it would deploy a whole control plane. The parts that affect an
// extension are not rewritten: the flows' tasks are methods of gardenlet's own Botanist and
// components, called in the order and with the dependencies of gardenlet's flows
// (pkg/gardenlet/controller/shoot/shoot of the Gardener module). Steps that concern neither
// extensions nor nodes (infrastructure, etcd, API server, network, DNS and so on) are left out,
// because kind provides them. The package polls more often than gardenlet (tasks.go), and makes
// gardener-resource-manager requeue deletions while a flow runs. Three things are emulated: the
// Worker, by starting and stopping kind nodes; the garden cluster, by an in-memory client, unless
// the testbed has a garden; and the stopped API server of a hibernated shoot, by a kubeconfig that
// reaches nothing.
//
// # With a garden
//
// A permanent process calls Manage, which runs gardenlet's own controllers and a controller for
// Shoots. Other processes only change the Shoot (Gardenlet.Remote), as users do. What the
// controller does with a Shoot depends on the first row that is true:
//
//	the Shoot                                    the controller
//	is scheduled to no seed, or to another one   ignores it
//	is deleted and has no finalizer              ignores it
//	is deleted, and no flow ever began           removes the finalizer
//	is Failed and unchanged, or to be ignored    updates its Cluster, if it has one
//	succeeded, and its next sync is not due      waits for the sync
//	is deleted, with force                       runs forceDeleteGraph, then removes the finalizer
//	is deleted                                   runs deleteGraph, then removes the finalizer
//	else                                         adds the finalizer, awaits the required extensions,
//	                                             and runs reconcileGraph, which may hibernate
//
// A flow begins with the last operation Processing, and rotations that the annotation requests in
// their first state. It reports its progress, and ends as one of these:
//
//	Succeeded   the conditions are checked again, and rotations reach the next phase
//	Error       it begins again after two to thirty seconds
//	Failed      an error has a code that gardenlet does not retry, such as a name other than
//	            Gardenlet.Name, or five minutes are over; a change or the annotation retry begins
//	            it again
//	Aborted     the process ended; the next one begins again
//
// The package contains no code for a particular extension, and it creates no clusters or nodes.
package gardenlet
