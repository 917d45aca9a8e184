// Package cleaner builds the DaemonSet registry-cleaner, whose pods take the configuration of removed caches off the
// nodes of a shoot: an init container runs `registry-cache clean`; what it says after it ended is the fact that the node is
// clean. RolloutOf tells which nodes are not.
//
// Everything here is a function of its arguments. What is cleaned, and how, is known to package nodeconfig/cleaner alone;
// when the DaemonSet comes and goes is known to package controller alone.
package cleaner
