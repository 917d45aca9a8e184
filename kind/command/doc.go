// Package command runs programs with kind's exec package, on the host or on a node. Its errors say
// what was run, what it printed and whether a timeout ended it.
//
// It must not know any particular program.
package command
