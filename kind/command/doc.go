// Package command runs programs by kind's exec package, on the host or on a node, so that a failure says what was run,
// what it printed and whether a time limit ended it.
//
// It must not know any particular program.
package command
