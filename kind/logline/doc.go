// Package logline parses a log line into time, level and message. It supports the formats of the
// testbed's components: systemd's journal, the timestamps that the kubelet adds to container
// output, logrus, zap (JSON and console), and klog.
//
// Callers decide what a line means.
package logline
