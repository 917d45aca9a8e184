// Package archive packs a folder into one .tar.gz, to attach it to an issue.
//
// It must not know what is in the folder.
package archive
