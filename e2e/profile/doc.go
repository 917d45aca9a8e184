// Package profile measures where a run spends CPU time: by component, and by spans of time such as
// the scenarios. It reads the counters of the kernel for all processes of the machine.
//
// It must not know what the spans are or how the testbed works.
package profile
