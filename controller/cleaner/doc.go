// Package cleaner builds the DaemonSet registry-cleaner, whose pods remove the configuration of
// deleted caches from the nodes of a shoot. An init container runs `registry-cache clean`. The node
// is clean when this container has succeeded. RolloutOf returns the nodes that are not clean.
//
// All functions are pure. Package nodeconfig/cleaner implements the clean-up of a node. Package
// controller creates and deletes the DaemonSet.
package cleaner
