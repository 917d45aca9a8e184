// Package nodescript has the script that applies the faults of a node, ends them without a process
// of the testbed, and lists them.
//
// It returns arguments and parses output. It must not know clusters or how to reach a node.
package nodescript
