// Package engine provides the Docker Engine that the testbed runs on. It uses a reachable engine
// unchanged. If there is none, it installs the distribution's packages and starts the engine, on
// Debian and Ubuntu as root.
//
// Pure functions of the observed host decide what to do. On a host without systemd, the engine runs
// in its own session. A label marks an engine that Ensure started, so that Release stops no other.
//
// The package must not know kind, clusters or images.
package engine
