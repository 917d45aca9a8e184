// Package cleaner builds the DaemonSet registry-cleaner, whose pods take the configuration of removed caches off the
// nodes of a shoot: an init container runs `registry-cache clean`, and the pod is available only after it succeeded. So
// "the DaemonSet is healthy" means "every node is clean".
//
// Everything here is a function of its arguments. What is cleaned, and how, is known to package nodeconfig/cleaner alone;
// when the DaemonSet comes and goes is known to package controller alone.
package cleaner
