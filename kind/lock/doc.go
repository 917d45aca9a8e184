// Package lock provides locks between the processes of this machine, with flock(2) on files: the
// kernel releases a lock when its holder ends, for whatever reason.
//
// Callers decide what a lock protects.
package lock
