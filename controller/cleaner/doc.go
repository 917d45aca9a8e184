// Package cleaner builds the DaemonSet registry-cleaner, whose pods remove the configuration of
// deleted caches from the nodes of a shoot. An init container runs `registry-cache clean`; when it
// has succeeded, the node is clean. RolloutOf returns the nodes that are not clean.
//
// All functions are pure. Only package nodeconfig/cleaner knows what is cleaned and how. Only
// package controller knows when the DaemonSet is created and deleted.
package cleaner
