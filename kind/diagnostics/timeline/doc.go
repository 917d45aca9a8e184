// Package timeline merges the logs and events of a testbed into one list, sorted by time: events of
// both clusters, journals of nodes, access logs of upstreams, logs of caches, the extension,
// gardener-resource-manager and gardenlet, and injected faults.
//
// It keeps only lines that matter for pulls. The files of the bundle have the other lines. It reads
// only a bundle. It must not know how a bundle is collected, or what is wrong.
package timeline
