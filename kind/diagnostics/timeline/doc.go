// Package timeline merges the logs and events of a testbed into one list, sorted by time: events of
// both clusters, journals of nodes, access logs of upstreams, logs of caches, the extension,
// gardener-resource-manager and gardenlet, and injected faults.
//
// It keeps only the lines that matter for pulls. Its only input is a bundle. It must import neither
// package diagnostics, which collects bundles, nor package finding, which finds problems in them.
package timeline
