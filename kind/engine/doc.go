// Package engine provides the Docker Engine that the testbed runs on: one that is reachable is used as it is; where
// none is, on Debian and Ubuntu as root, it is installed from the distribution's packages and started.
//
// What to do is decided by pure functions of what was seen on the host. On a host without systemd the engine runs in a
// session of its own, marked by a label, so that Release stops nothing but what Ensure started.
//
// It must not know kind, clusters or images.
package engine
