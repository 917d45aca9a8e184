// Package delay is a TCP proxy that delays the answers of a server. It adds latency where the
// kernel cannot, since not every kernel has tc netem.
//
// It must not know the protocol, or what a fault is.
package delay
