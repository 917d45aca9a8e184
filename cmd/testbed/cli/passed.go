package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/gardener-extensions/registry-cache/internal/program"
	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/shell"
)

// runs runs a program on the node or cluster with this name, and returns its exit code.
type runs func(ctx context.Context, testbed *kind.Testbed, name string, args []string, streams shell.Streams) (int, error)

// passedOn makes a command of one whose arguments behind the first belong to another program, as
// standard input, output and exit code do.
func passedOn(cmd *cobra.Command, options *kind.Options, std program.Streams, run runs) *cobra.Command {
	cmd.Flags().SetInterspersed(false) // what follows the first argument is the program's
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		testbed, err := newTestbed(*options)
		if err != nil {
			return err
		}
		args = withoutDashes(args)
		code, err := run(cmd.Context(), testbed, args[0], args[1:], shell.Streams{In: cmd.InOrStdin(), Out: std.Out, Err: std.Err})
		return errors.Join(err, program.Exit(code))
	}
	return cmd
}

// withoutDashes takes the -- between the first argument and the others away.
func withoutDashes(args []string) []string {
	if len(args) > 1 && args[1] == "--" {
		return append([]string{args[0]}, args[2:]...)
	}
	return args
}
