// Package configuration defines testbed.yaml, the file that describes a testbed. It reads the file,
// sets defaults, validates, and returns the differences of two configurations with their effects
// on a running testbed.
//
// All functions depend only on their arguments, except that Load reads a file. It must not know how
// clusters and registries are created.
package configuration
