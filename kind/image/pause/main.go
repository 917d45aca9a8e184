// Command pause waits for SIGTERM or SIGINT and exits. The testbed's test images run it, because a
// pod needs a process. It must have no dependencies: its size adds to every test image.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM, syscall.SIGINT)
	<-ended
}
