// Package diagnostics collects what an engineer needs after a failure: journals, unit states and
// the registry configuration of nodes; objects, events and pod logs of clusters; the output of
// upstreams. An index lists the findings, the files, and what could not be collected.
//
// The package must not change the testbed, so that a failure does not get worse. Package finding
// finds problems in the collected files. Neither package may contain code for single scenarios.
package diagnostics
