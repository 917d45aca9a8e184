// Package fulldisk reruns a test in a child process that has a full file system. The package must
// not import the tested code.
package fulldisk
