// Package profile measures the CPU time of a run, by component (program) and by spans of time such
// as scenarios. The kernel counts this time for each process of the machine.
//
// The package must not import packages of the testbed, and must work for all kinds of spans.
package profile
