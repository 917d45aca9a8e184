// Package progress prints and records the steps of a long task. It prints one line for each step,
// with a mark, a detail and the seconds. It returns the steps for a machine-readable summary.
//
// It must not know what the steps do or where the summary is written.
package progress
