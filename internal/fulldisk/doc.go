// Package fulldisk reruns a test in a child process whose file system has no space left. The
// package must not import the tested code.
package fulldisk
