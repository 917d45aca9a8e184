// Package finding finds problems in a bundle: nodes without a hosts.toml, a hosts.toml with an
// address that no Service has, caches that are not ready, failed pulls, errors of upstreams,
// injected faults. Each finding names the file that shows the problem.
//
// Each check is a function of a bundle. A check reports nothing about parts that were not
// collected, so a bundle without findings does not prove that the testbed is healthy. The package
// must not import package diagnostics, which collects and prints bundles.
package finding
