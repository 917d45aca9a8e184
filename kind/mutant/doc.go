// Package mutant holds planted bugs: one line of one source file each, replaced by a wrong one. The scenarios are worth
// something only if they turn red for each of them, so each names those that must.
//
// A bug is data. It gets into a program by `go build -overlay`, and the file itself stays as it is. The package reads and
// writes files and judges results; it must not know how a program is built, what a testbed is, or how scenarios are run.
package mutant
