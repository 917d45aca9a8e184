// Package fulldisk reruns a test in a child process that has a full file system. It must not depend
// on the tested code.
package fulldisk
