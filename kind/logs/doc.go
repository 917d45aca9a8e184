// Package logs reads the logs of a testbed's components, sorted by time or as they are written. A
// Stream is the log of a container, a systemd unit or an upstream. Package logline parses lines.
package logs
