// Package file writes files atomically: no reader sees a half-written file, not even after a crash.
//
// It must not know what the files contain.
package file
