// Package bundle parses a bundle of diagnostics: nodes with their units and hosts.toml files, the
// objects of both clusters, upstreams with their access logs, and injected faults.
//
// It reads only the files of the bundle, so that users can verify each finding. It must not know
// how the files are collected, or what is a problem. The part of a missing or damaged file is
// empty.
package bundle
