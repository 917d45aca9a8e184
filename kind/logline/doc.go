// Package logline reads a line of a log: when, how bad, and what. It knows the formats that the parts of a testbed write:
// systemd's journal, the timestamps that the kubelet puts before what a container prints, logrus, zap (JSON and console),
// and klog.
//
// It is a function of text. It must not know where a line comes from, or what it means.
package logline
