// Package delay is a TCP proxy that hands on, after a fixed time, what a server answers: latency for a server whose packets the kernel
// cannot hold back (tc netem is not in every kernel).
//
// It must not know what it carries, nor what a fault is.
package delay
