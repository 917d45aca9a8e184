// Package rig is the harness of the scenarios. A Session holds the testbed and the results of one
// e2e run. A Scenario consists of a name and steps, and a Run is one execution of a Scenario. The
// methods of Run are actions and checks that several scenarios share, with nodes and without. A
// Recording proves in which order objects changed, and NetworkRules prove which connections are
// allowed. Neither needs the build tag e2e, so that unit tests can cover both.
//
// Code for a single scenario belongs in package e2e.
package rig
