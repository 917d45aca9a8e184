// Package shell runs programs on the nodes of a testbed, and kubectl on its clusters, with the
// caller's standard streams and exit code.
package shell
