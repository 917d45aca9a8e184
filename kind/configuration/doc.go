// Package configuration defines testbed.yaml, the file that describes a testbed. It reads the file,
// sets defaults, and validates. It compares two configurations and returns each difference with its
// effect on a running testbed.
//
// All functions depend only on their arguments, except that Load reads a file. The package must not
// know how clusters and registries are created.
package configuration
