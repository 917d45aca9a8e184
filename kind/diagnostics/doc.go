// Package diagnostics collects what an engineer needs after a failure: journals, unit states and
// the registry configuration of nodes; objects, events and pod logs of clusters; the output of
// upstreams. An index lists the findings, the files, and what could not be collected.
//
// It only reads and must not make a failure worse. Package finding decides what is wrong, from the
// collected files. It must not know what a scenario tests: the caller passes the nodes, clusters
// and upstreams.
package diagnostics
