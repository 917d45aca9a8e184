// Package load contains the clients of the benchmark: they download, measure and discard.
//
// The package must not know what serves them.
package load
