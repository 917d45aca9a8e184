// Package program is the frame of every command of this repository: signals, streams and exit
// codes. Progress and messages go to standard error, results that programs read to standard output.
//
// It must not know what any command does.
package program
