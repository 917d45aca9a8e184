// Command pause waits for SIGTERM or SIGINT and exits. The testbed's test images run it, because
// they have to run in a pod but have nothing to do. It must have no dependencies: its size adds to
// every test image.
package main
