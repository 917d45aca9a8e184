// Package program runs the commands of this repository: signals, streams and exit codes. Answers go
// to standard output. Progress and messages go to standard error.
//
// The package must contain no code for a particular command.
package program

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"
)

// Streams are the outputs of a command.
type Streams struct {
	// Out is for answers, and Err is for everything else.
	Out, Err io.Writer
}

// Some dependencies log before main starts. For example, github.com/VictoriaMetrics/metrics, which
// the API types of its operator import, logs that the kernel has no PSI metrics. Go initializes
// this package first: metrics depends on github.com/valyala/fastrand, whose import path sorts
// later.
func init() { log.SetOutput(io.Discard) }

// Main runs the command line of this process and returns its exit code. SIGINT and SIGTERM cancel
// the context of the command; a second signal kills the process.
func Main(newRoot func(Streams) *cobra.Command) int {
	log.SetOutput(os.Stderr)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	streams := Streams{Out: os.Stdout, Err: os.Stderr}
	return Run(ctx, newRoot(streams), streams, os.Args[1:])
}

// Run executes one command line and returns its exit code (see ExitCode). Errors are printed to
// streams.Err, except those from Exit. Unknown, missing and conflicting flags are usage errors.
func Run(ctx context.Context, root *cobra.Command, streams Streams, args []string) int {
	root.SilenceErrors, root.SilenceUsage = true, true
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetOut(streams.Out)
	root.SetErr(streams.Err)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return Usage(err) })
	root.SetArgs(append([]string{}, args...)) // cobra replaces nil by os.Args
	cmd, err := root.ExecuteContextC(ctx)
	if err != nil && errors.Join(cmd.ValidateRequiredFlags(), cmd.ValidateFlagGroups()) != nil {
		err = Usage(err) // cobra has no hook for these errors
	}
	if silent := exited(0); err != nil && !errors.As(err, &silent) {
		fmt.Fprintf(streams.Err, "%s: %v\n", root.Name(), err)
	}
	return ExitCode(err)
}

// Args wraps a check of arguments, so that its errors are usage errors and show the usage line.
func Args(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return Usage(fmt.Errorf("%w (usage: %s)", err, cmd.UseLine()))
		}
		return nil
	}
}

// Verbs is the RunE of a command that only groups subcommands: it always returns a usage error.
func Verbs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return Usage(fmt.Errorf("unknown command %q (%s --help lists all)", args[0], cmd.CommandPath()))
	}
	return Usage(fmt.Errorf("name a command (%s --help lists all)", cmd.CommandPath()))
}

// Version returns the versions of the main module and of Go that this process was built with. The
// version of a build from a checkout without a VCS stamp is "(devel)".
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return cmp.Or(info.Main.Version, "(devel)") + ", " + info.GoVersion
}
