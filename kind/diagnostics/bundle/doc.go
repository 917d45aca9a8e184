// Package bundle parses a bundle of diagnostics: nodes with their units and hosts.toml files, the
// objects of both clusters, upstreams with their access logs, and injected faults.
//
// It reads nothing but the files of the bundle, so that a reader can verify each finding. It must
// not know how the files are collected, or what is good or bad. A missing or damaged file leaves
// its part empty.
package bundle
