// Package logs merges several logs into one, sorted by time, or follows them.
//
// A function opens each log. The package must not know clusters, nodes or containers.
package logs
