// Package logs reads the logs of a testbed's components, either sorted by time or while they grow.
// A Stream is the log of a container, a systemd unit or an upstream. Package logline parses lines.
package logs
