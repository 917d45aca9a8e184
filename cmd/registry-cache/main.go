package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() { os.Exit(mainWithSignals()) }

// mainWithSignals ends a command at the first signal through its context; a second one ends the process at once.
func mainWithSignals() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	return run(ctx, streams{out: os.Stdout, err: os.Stderr}, os.Args[1:])
}
