// Package program is the frame of every command of this repository: signals, streams and exit codes. Progress and prose go
// to standard error, answers that programs read to standard output.
//
// It must not know what any command does.
package program
