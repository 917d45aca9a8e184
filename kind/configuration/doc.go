// Package configuration defines testbed.yaml, the file that describes a testbed. The package reads
// the file, sets defaults, and validates the result.
//
// Only Load reads a file. Other packages create the clusters and registries.
package configuration
