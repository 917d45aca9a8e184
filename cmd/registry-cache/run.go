package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

// Exit codes, as every command of this repository uses them.
const (
	exitFine        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitEnvironment = 3
)

type streams struct{ out, err io.Writer }

// usageError marks an error that the caller made: wrong flags, arguments or configuration.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// environmentError marks an error of the surroundings, which may be gone at the next start.
type environmentError struct{ error }

func (e environmentError) Unwrap() error { return e.error }

// run executes the command line and returns the exit code; it has printed the error, if there was one.
func run(ctx context.Context, std streams, args []string) int {
	root := newRootCommand(std)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err != nil {
		fmt.Fprintf(std.err, "registry-cache: %v\n", err)
	}
	return exitCode(err)
}

// exitCode tells what kind of failure an error is.
func exitCode(err error) int {
	switch {
	case err == nil:
		return exitFine
	case errors.As(err, new(usageError)):
		return exitUsage
	case errors.As(err, new(environmentError)):
		return exitEnvironment
	default:
		return exitFailed
	}
}

func newRootCommand(std streams) *cobra.Command {
	root := &cobra.Command{
		Use:           "registry-cache",
		Short:         "A pull-through cache for one upstream registry, and the clean-up of nodes that used it",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError{fmt.Errorf("unknown command %q (registry-cache --help lists all)", args[0])}
			}
			return usageError{errors.New("name a command: serve, clean or pause (registry-cache --help)")}
		},
	}
	root.SetOut(std.out)
	root.SetErr(std.err)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddCommand(newServeCommand(std), newCleanCommand(std), newPauseCommand())
	root.CompletionOptions.DisableDefaultCmd = true
	return root
}

// exactly refuses another number of arguments as wrong use.
func exactly(count int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := cobra.ExactArgs(count)(cmd, args); err != nil {
			return usageError{fmt.Errorf("%w (usage: %s)", err, cmd.UseLine())}
		}
		return nil
	}
}
