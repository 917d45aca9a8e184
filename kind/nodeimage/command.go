package nodeimage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/kind/pkg/exec"

	"github.com/gardener-extensions/registry-cache/kind/command"
)

// interruptGrace is how long an interrupted command may take to end before it is killed.
const interruptGrace = 5 * time.Second

// interruptible is exec.CommandContext for commands that clean up after themselves: when ctx ends
// they first get SIGINT, as from Ctrl-C. go then removes its work folder. mmdebstrap waits for its
// children, which get the signal only from a terminal, so without one it is killed after the grace
// period. Its temporary folder is inside that of the cache and is removed with it.
func interruptible(ctx context.Context, name string, args ...string) exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	if local, ok := cmd.(*exec.LocalCmd); ok {
		local.Cancel = func() error { return local.Process.Signal(os.Interrupt) }
		local.WaitDelay = interruptGrace
	}
	return cmd
}

// feed runs the command and streams the output of write to its standard input.
func feed(ctx context.Context, cmd exec.Cmd, write func(io.Writer) error) error {
	reader, writer := io.Pipe()
	written := make(chan error, 1)
	go func() {
		err := write(writer)
		written <- errors.Join(err, writer.CloseWithError(err))
	}()
	_, err := command.Run(ctx, cmd.SetStdin(reader))
	_ = reader.Close() // unblocks write if the command ended early
	if writeErr := <-written; err == nil {
		err = writeErr
	}
	return err
}

// fetchBackoff allows three attempts to download something, within half a minute.
var fetchBackoff = wait.Backoff{Steps: 3, Duration: 5 * time.Second, Factor: 3, Jitter: 0.1}

// retry calls fetch until it succeeds, the backoff ends or ctx does. It returns fetch's last error.
func retry(ctx context.Context, backoff wait.Backoff, what string, fetch func(context.Context) error) error {
	var last error
	err := wait.ExponentialBackoffWithContext(ctx, backoff, func(ctx context.Context) (bool, error) {
		last = fetch(ctx)
		return last == nil, nil
	})
	switch {
	case err == nil:
		return nil
	case last == nil: // ctx was done before the first attempt
		last = err
	}
	return fmt.Errorf("%s (tried up to %d times): %w", what, backoff.Steps, last)
}
