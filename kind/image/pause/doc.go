// Command pause waits for SIGTERM or SIGINT and exits. The testbed's test images run it, because a
// pod needs a process. It must have no dependencies: its size adds to every test image.
package main
