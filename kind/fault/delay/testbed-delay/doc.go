// Command testbed-delay is the program that a node runs while an API server of the testbed has latency. It only reads its arguments and
// tells systemd that it listens: what it does is in package delay.
package main
