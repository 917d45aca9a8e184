// Package report renders the results of an e2e run: index.html and terminal lines for people,
// junit.xml and summary.json for programs. Its Sampler records CPU and memory usage during the run.
//
// Rendering is a pure function of a Report. Files are replaced atomically, so they are complete
// even if the run is killed. The package must work without a cluster and for any scenario.
package report
