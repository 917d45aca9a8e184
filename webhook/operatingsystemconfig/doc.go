// Package operatingsystemconfig mutates the OperatingSystemConfigs of shoots that have caches. It
// adds the script and the unit of package nodeconfig, with the endpoints from the status of the
// Extension. So every node pulls through the caches, including nodes that join later.
package operatingsystemconfig
