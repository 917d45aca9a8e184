// Command testbed-answer runs the server of package answer on a node whose cache has the fault
// "status" or "expired-tls". It notifies systemd when it listens.
package main
