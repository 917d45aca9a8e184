// Package delay is a TCP proxy that delays the answers of a server. It adds latency on kernels
// without tc netem.
//
// It must not parse what it forwards, and must not import package fault.
package delay
