// Package rig is the harness of the scenarios. A Session has the testbed and the results of one
// run, a Scenario is a name with steps, and a Run is a scenario while it runs. Methods of Run do
// what several scenarios need to do to the Shoot, its nodes and its caches.
//
// The package must not depend on a scenario.
package rig
