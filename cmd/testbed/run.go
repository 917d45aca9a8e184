package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/engine"
	"github.com/gardener-extensions/registry-cache/kind/preflight"
)

// Exit codes, as every command of this repository uses them.
const (
	exitFine        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitEnvironment = 3
)

type streams struct{ out, err io.Writer }

// usageError marks an error that the caller made: wrong flags or arguments.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// run executes the command line and returns the exit code; it has printed the error, if there was one.
func run(ctx context.Context, std streams, args []string) int {
	root := newRootCommand(std)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err != nil {
		fmt.Fprintf(std.err, "testbed: %v\n", err)
	}
	return exitCode(err)
}

// exitCode tells what kind of failure an error is.
func exitCode(err error) int {
	var (
		usage    usageError
		missing  *engine.Missing
		failures *preflight.Failures
	)
	switch {
	case err == nil:
		return exitFine
	case errors.As(err, &usage):
		return exitUsage
	case errors.As(err, &missing), errors.As(err, &failures):
		return exitEnvironment
	default:
		return exitFailed
	}
}

func newRootCommand(std streams) *cobra.Command {
	options := kind.Options{Out: std.err}
	root := &cobra.Command{
		Use:           "testbed",
		Short:         "Two real kind clusters as Gardener seed and shoot, with upstream registries and the extension",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return usageError{errors.New("name a command: up, status or down (testbed --help lists them)")}
		},
	}
	root.SetOut(std.out)
	root.SetErr(std.err)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.PersistentFlags().StringVar(&options.Prefix, "prefix", kind.DefaultPrefix,
		"name prefix of the clusters; testbeds with different prefixes live side by side")
	root.AddCommand(newUpCommand(&options), newStatusCommand(&options, std), newDownCommand(&options))
	root.CompletionOptions.DisableDefaultCmd = true
	return root
}

// noArguments refuses stray arguments as wrong use.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError{fmt.Errorf("%s: unexpected argument %q", cmd.CommandPath(), args[0])}
	}
	return nil
}

// newTestbed maps invalid options to wrong use.
func newTestbed(options kind.Options) (*kind.Testbed, error) {
	testbed, err := kind.New(options)
	if err != nil {
		return nil, usageError{err}
	}
	return testbed, nil
}
