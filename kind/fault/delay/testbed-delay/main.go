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
	if err := ready(ctx); err != nil {
		return err
	}
	return delay.Serve(ctx, listener, args[1], wait)
}

// ready notifies systemd that connections are accepted, see sd_notify(3).
func ready(ctx context.Context) error {
	socket := os.Getenv("NOTIFY_SOCKET")
	if socket == "" {
		return nil
	}
	connection, err := (&net.Dialer{}).DialContext(ctx, "unixgram", socket)
	if err != nil {
		return fmt.Errorf("notify systemd: %w", err)
	}
	_, err = connection.Write([]byte("READY=1"))
	return errors.Join(err, connection.Close())
}
