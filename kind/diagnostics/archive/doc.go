// Package archive packs a folder into one .tar.gz, to attach it to an issue.
//
// It must not contain code for particular files.
package archive
