// Package file writes files so that no reader, and no reader after a crash, sees a part of one.
//
// It must not know what it writes.
package file
