package program

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// Streams are where a command writes.
type Streams struct {
	// Out takes answers that programs read, Err everything else.
	Out, Err io.Writer
}

// Main runs the command line of this process and returns its exit code. SIGINT and SIGTERM end the command's context; a
// second signal ends the process at once.
func Main(newRoot func(Streams) *cobra.Command) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	streams := Streams{Out: os.Stdout, Err: os.Stderr}
	return Run(ctx, newRoot(streams), streams, os.Args[1:])
}

// Run executes one command line and returns its exit code, see ExitCode. An error is printed to streams.Err, after the
// name of the command, but for one of Exit; wrong flags are errors of usage.
func Run(ctx context.Context, root *cobra.Command, streams Streams, args []string) int {
	root.SilenceErrors, root.SilenceUsage = true, true
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetOut(streams.Out)
	root.SetErr(streams.Err)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return Usage(err) })
	root.SetArgs(append([]string{}, args...)) // for nil cobra takes the arguments of this process
	err := root.ExecuteContext(ctx)
	if silent := exited(0); err != nil && !errors.As(err, &silent) {
		fmt.Fprintf(streams.Err, "%s: %v\n", root.Name(), err)
	}
	return ExitCode(err)
}

// Args makes what a check of arguments refuses an error of usage, and names the right use.
func Args(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return Usage(fmt.Errorf("%w (usage: %s)", err, cmd.UseLine()))
		}
		return nil
	}
}

// Verbs is for a command that only has commands below it: it refuses to be run without one, and with an unknown one.
func Verbs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return Usage(fmt.Errorf("unknown command %q (%s --help lists all)", args[0], cmd.CommandPath()))
	}
	return Usage(fmt.Errorf("name a command (%s --help lists all)", cmd.CommandPath()))
}
