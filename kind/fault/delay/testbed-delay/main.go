package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/gardener-extensions/registry-cache/kind/fault/delay"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "testbed-delay:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) != 3 {
		return errors.New("usage: testbed-delay LISTEN_ADDRESS SERVER_ADDRESS DELAY")
	}
	wait, err := time.ParseDuration(args[2])
	if err != nil {
		return fmt.Errorf("delay: %w", err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", args[0])
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	if _, err := daemon.SdNotify(false, daemon.SdNotifyReady); err != nil {
		return fmt.Errorf("notify systemd: %w", err)
	}
	return delay.Serve(ctx, listener, args[1], wait)
}
