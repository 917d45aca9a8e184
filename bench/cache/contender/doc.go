// Package contender starts what the benchmark compares, each as a process with an empty volume:
// this repository's cache, stock distribution, nginx. Direct is no process: clients ask the
// upstream.
//
// The package must not know what is measured.
package contender
