package nodeimage

import (
	"context"
	"errors"
	"io"
	"os"
	"time"

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
