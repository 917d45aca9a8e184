// Package progress shows and records what long work is doing: one line per named step, with a mark, a detail and
// seconds, and the same steps as values for a machine-readable summary.
//
// It must not know what the steps do, nor where the summary is written.
package progress
