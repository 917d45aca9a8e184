// Package fulldisk runs a test again on a file system that is full. It knows nothing of what is
// tested.
package fulldisk
