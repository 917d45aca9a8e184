// Package fault holds the faults that the testbed can bring about, as values: what can be broken where, how it is asked for,
// how it is told, and the script by which a node ends a fault without a process of the testbed.
//
// It must not know how a fault is brought about: for upstreams that is in package server, for all else in package kind. It is
// linked into the upstreams' program and therefore imports no container engine and no Kubernetes client.
package fault
