// Package doctor builds and prints the report of `testbed doctor`: what is wrong and how to fix it.
// Callers collect the facts; this package must not inspect anything itself.
package doctor
