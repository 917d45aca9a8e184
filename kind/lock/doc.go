// Package lock lets one process at a time do something on this machine, by flock(2) on a file: the kernel frees a lock
// when its holder ends, however it ends.
//
// It must not know what is locked.
package lock
