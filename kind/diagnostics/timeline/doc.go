// Package timeline merges what happened on a testbed into one list, sorted by time: events of both clusters, the journals of
// nodes, upstreams' access logs, logs of caches, of the extension, of gardener-resource-manager and of gardenlet, faults.
//
// Of each source only the lines that tell something about a pull are taken; the files of the bundle have the rest. It is a
// function of a bundle, and must not know how one is collected, nor conclude anything.
package timeline
