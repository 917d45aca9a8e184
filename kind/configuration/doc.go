// Package configuration is the file from which a testbed is brought up, testbed.yaml: its type, how it is read, its defaults,
// what is wrong with one, and what has to be done to bring a testbed from one to another.
//
// All of it are functions of values; only Load reads a file. The package must not know how clusters and registries are made.
package configuration
