package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/gardener-extensions/registry-cache/kind/fault/answer"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := run(ctx, os.Args); err != nil {
		fmt.Fprintln(os.Stderr, "testbed-answer:", err)
		os.Exit(1)
	}
}

// run speaks HTTPS if there is a file <program>.pem.
func run(ctx context.Context, args []string) error {
	if len(args) != 3 {
		return errors.New("usage: testbed-answer LISTEN_ADDRESS STATUS")
	}
	status, err := strconv.Atoi(args[2])
	if err != nil {
		return fmt.Errorf("status: %w", err)
	}
	pair, err := os.ReadFile(args[0] + ".pem")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read the certificate: %w", err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", args[1])
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	if _, err := daemon.SdNotify(false, daemon.SdNotifyReady); err != nil {
		return fmt.Errorf("notify systemd: %w", err)
	}
	return answer.Serve(ctx, listener, status, pair)
}
