// Package extension runs the extension's binary as a process of this machine, with the flags of its chart, and reads from the
// kernel what it uses.
//
// It must not know what the extension is asked to do.
package extension
