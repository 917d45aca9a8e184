// Package doctor builds and prints the report of `testbed doctor`: what is wrong with a machine and
// a testbed, and how to fix it. Callers collect the facts; this package must not inspect anything
// itself.
package doctor
