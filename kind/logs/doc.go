// Package logs reads the logs of a testbed's components, sorted by time or as they are written. A
// Stream is one log: of a container, of a systemd unit, or of an upstream. Package logline parses
// it.
package logs
