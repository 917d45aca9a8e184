// Package fault adds, lists and deletes faults of the testbed. The table in injections.go has a
// line for each kind of fault of each role. Package spec describes the faults, package nodescript
// applies them on nodes, and package server changes an upstream's answers.
//
// Active faults are stored where they are applied: in the containers of the upstreams and on the
// nodes. The package must not import commands that use it.
package fault
