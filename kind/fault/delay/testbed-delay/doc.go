// Command testbed-delay runs the proxy of package delay on a node whose API server has the fault
// "latency". It notifies systemd when it listens.
package main
