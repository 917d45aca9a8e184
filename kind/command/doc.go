// Package command runs programs with kind's exec package, on the host or on a node. Its errors
// contain the command line, the end of the output, and the cause if a timeout ended the program.
//
// The package must not contain code for any particular program.
package command
