// Package configuration defines testbed.yaml, the file that describes a testbed: its type,
// defaults, validation, how it is read, and what it takes to change a testbed from one
// configuration to another.
//
// Everything here is a function of values; only Load reads a file. The package must not know how
// clusters and registries are created.
package configuration
