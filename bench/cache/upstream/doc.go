// Package upstream contains the upstream of the benchmark: a real distribution registry as a
// process, and the line to it, a proxy that delays, limits, counts and breaks.
//
// The package must not know which cache uses the line.
package upstream
