// Package delay is a TCP proxy that delays the answers of a server. It adds latency on kernels
// without tc netem.
//
// It must not know the protocol, or what a fault is.
package delay
