// Package nodescript contains the script that applies, ends and lists the faults of a node. The
// script ends a fault after its duration even if no process of the testbed runs.
//
// The package returns arguments of the script and parses its output. It must not import package
// cluster: package fault runs the script on nodes.
package nodescript
