// Package bundle parses a bundle of diagnostics: nodes with their units and hosts.toml files, the
// objects of both clusters, upstreams with their access logs, and injected faults.
//
// It reads nothing but the files of the bundle, so that users can verify each finding. For a
// missing or damaged file it returns empty fields. It must import neither package diagnostics,
// which collects the files, nor package finding, which finds problems in them.
package bundle
