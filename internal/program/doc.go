// Package program runs the commands of this repository: signals, streams and exit codes. Answers go
// to standard output, progress and messages to standard error.
//
// The package must contain no code for a particular command.
package program
