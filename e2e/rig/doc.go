// Package rig is the harness of the scenarios: a Session holds the testbed and the results of one
// run, a Scenario is a name with steps, and a Run is a scenario while it runs. What several
// scenarios do to the Shoot, its nodes and its caches are methods of Run.
//
// It knows no scenario.
package rig
