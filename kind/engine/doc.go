// Package engine provides the Docker Engine that the testbed runs on. A reachable engine is used
// unchanged. If there is none, the package installs the operating system's packages and starts
// an engine, but only as root on Debian and Ubuntu.
//
// Pure functions of the observed host decide what to do. On a host without systemd, the engine runs
// in its own session. Release stops only an engine with the label that Ensure sets.
package engine
