// Command upstream-registry is the program of the testbed's upstream registries. It only reads flags and signals: what
// it serves is in package server.
package main
