// Package mutant has planted bugs. Each replaces one line of one source file with a wrong one, and
// names the scenarios that must fail. They prove that the scenarios detect bugs.
//
// A bug is data. It gets into a program by `go build -overlay`; the source file does not change.
// The package reads and writes files and evaluates results. It must not know how a program is
// built, what a testbed is, or how scenarios run.
package mutant
