// Package file writes files atomically: no reader sees a half-written file, not even after a crash.
package file
