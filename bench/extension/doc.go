// Package extension runs the extension's binary as a process of this machine with the flags of its
// chart, reads its CPU and memory from the kernel, and sends load to its webhook.
//
// The package must treat the extension as a black box.
package extension
