// Package filetree describes the files of an image as values, and writes them as a reproducible tar
// archive.
//
// The package must not contain the paths or contents of particular files.
package filetree
