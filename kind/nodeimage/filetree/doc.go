// Package filetree describes the files of an image as values, writes them as a reproducible tar
// archive, and makes layers and images of such archives.
//
// The package must not contain the paths or contents of particular files.
package filetree
