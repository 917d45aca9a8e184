// Package filetree describes the files of an image as values, and writes them as a reproducible tar
// archive.
//
// It must not know what the files are for.
package filetree
