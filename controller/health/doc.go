// Package health reports in conditions of the Extension what is wrong with single caches. None of
// it fails a reconciliation: nodes pull from the upstream meanwhile.
//
// The condition CachesHealthy is for operators of the seed. gardenlet copies only conditions of a
// few types to the Shoot, so the same text is in SystemComponentsHealthy for the Shoot's owner.
// gardenlet itself adds to that one what is wrong with the ManagedResources.
//
// The package reads pods and claims in the shoot, and changes nothing there.
package health
