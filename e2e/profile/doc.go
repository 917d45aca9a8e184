// Package profile measures the CPU time of a run, by component (program) and by spans of time such
// as scenarios. It reads the kernel's counters of all processes of the machine.
//
// The package must not depend on the meaning of the spans or on the testbed.
package profile
