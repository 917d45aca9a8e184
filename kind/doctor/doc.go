// Package doctor builds the report of `testbed doctor`: what is wrong with the machine, the Docker
// Engine and the testbed, and how to fix it.
//
// It only collects: packages preflight, engine and diagnostics decide what is wrong.
package doctor
