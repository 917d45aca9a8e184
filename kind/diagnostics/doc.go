// Package diagnostics collects what an engineer needs after a failure: journals, unit states and
// the registry configuration of nodes; objects, events and pod logs of clusters; the output of
// upstreams. An index lists the findings, the files, and what could not be collected.
//
// The package only reads and must not make a failure worse. Package finding finds problems in the
// collected files. The caller passes the nodes, clusters and upstreams: package diagnostics must
// not know what a scenario tests.
package diagnostics
