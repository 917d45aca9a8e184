// Package diagnostics writes down what an engineer needs after a failure: journals, unit states and registry
// configuration of nodes, objects, events and pod logs of clusters, the output of upstreams; with an index that also
// says what could not be had.
//
// It reads only, and never makes a failure worse; what is wrong is concluded by package finding, from what was written
// down. It must not know what a scenario tests: which nodes, clusters and upstreams there are is told by its caller.
package diagnostics
