// Package report turns what a run of the scenarios found into lines for people, and into junit.xml and summary.json for
// machines.
//
// Rendering is pure: a Report in, bytes out. Writing is atomic, so that a reader sees the last complete report even when
// the run is killed. The package must not know how a scenario is run, nor that clusters exist.
package report
