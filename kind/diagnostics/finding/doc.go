// Package finding finds problems in a bundle, and names for each problem the file that shows it:
// nodes without a hosts.toml, a hosts.toml with an address that no Service has, caches that are not
// ready, failed pulls, errors of upstreams, injected faults.
//
// Each check is a function of a bundle. It must not know how a bundle is collected or printed. A
// check reports nothing about parts that were not collected, so a bundle without findings does not
// prove that the testbed is healthy.
package finding
