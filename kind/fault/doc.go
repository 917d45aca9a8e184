// Package fault defines the faults of the testbed as values: targets, kinds and options, how they
// are described, and the script that applies faults on a node and ends them without a process of
// the testbed.
//
// It must not know how a fault is applied: packages server (for upstreams) and kind (for the rest)
// do. The program of the upstreams links it, so it must not import a container engine or a
// Kubernetes client.
package fault
