// Package bundle parses a bundle of diagnostics: nodes with their units and hosts.toml files, the
// objects of both clusters, upstreams with their access logs, and injected faults.
//
// It reads nothing but the files of the bundle, so that users can verify each finding. It must know
// neither how the files are collected nor what counts as a problem. For a missing or damaged file
// it returns empty fields.
package bundle
