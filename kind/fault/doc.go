// Package fault adds, lists and deletes faults of the testbed. A fault of a target is one line of
// the table in injections.go: package spec describes it, package nodescript applies it on nodes,
// and package server applies those of an upstream's answers.
//
// Active faults are stored where they are applied: in the containers of the upstreams and on the
// nodes. The package must not know the commands that use it.
package fault
