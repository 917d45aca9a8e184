// Package configuration defines testbed.yaml, the file that describes a testbed. The package reads
// the file, sets defaults, and validates.
//
// Except for Load, which reads a file, the result of a function depends only on its arguments.
// Other packages create the clusters and registries.
package configuration
