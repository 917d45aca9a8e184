// Package progress prints and records the steps of a long task. It prints one line for each step,
// with a mark, a detail and its duration in seconds. It returns the steps for a machine-readable
// summary.
//
// The package must not contain code for particular steps, and it does not write the summary.
package progress
