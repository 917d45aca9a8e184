// Package daemon runs a program as a background process of this machine, with its log in a file.
//
// The package must not depend on what the program does.
package daemon
