// Package operatingsystemconfig mutates OperatingSystemConfigs of shoots that have caches: it adds the script and the unit
// of package nodeconfig, with the endpoints from the status of the Extension. So every node, also one that joins later,
// pulls through the caches.
//
// It must not know how caches are deployed or what the script does.
package operatingsystemconfig
