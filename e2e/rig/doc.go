// Package rig is the harness of the scenarios. A Session holds the testbed and the results of one
// e2e run, a Scenario is a name with steps, and a Run is one execution of a Scenario. The methods
// of Run are actions and checks that several scenarios share.
//
// Code for a single scenario belongs in package e2e.
package rig
