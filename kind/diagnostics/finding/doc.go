// Package finding concludes from a bundle what is wrong now, and names the file that shows it: nodes without a hosts.toml, a
// hosts.toml that leads to an address that no Service has, caches that are not ready, pulls that fail, upstreams that answer
// with errors, faults that somebody put in.
//
// Each check is a function of a bundle. It must not know how a bundle is collected or printed, and says nothing about parts
// that were not collected: no finding is no proof.
package finding
