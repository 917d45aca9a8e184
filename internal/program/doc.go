// Package program runs the commands of this repository: signals, streams and exit codes. Answers go
// to standard output, progress and messages to standard error.
//
// The package must not depend on any command.
package program
