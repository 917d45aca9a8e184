// Package progress prints and records the steps of long work: one line for each named step, with a
// mark, a detail and the seconds, and the same steps as values for a machine-readable summary.
//
// It must not know what the steps do or where the summary is written.
package progress
