package cli

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/gardener-extensions/registry-cache/internal/program"
	"github.com/gardener-extensions/registry-cache/kind"
)

func newExecCommand(options *kind.Options, std program.Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "exec NODE -- COMMAND [ARGUMENT...]",
		Short: "Run a command on a node, with this standard input and with its output and exit code",
		Long: "Run a command on a node of either cluster, as root. The node may be named without what all names begin with: worker2 of\n" +
			"the shoot, seed-control-plane. Standard input is passed on, the exit code is that of the command. No shell takes part:\n" +
			"for pipes and variables of the node run bash -c. A shell with a terminal is `testbed shell`.",
		Example: "  testbed exec worker2 -- crictl images\n" +
			"  testbed exec worker -- bash -c 'cat /etc/containerd/certs.d/*/hosts.toml'",
		Args: program.Args(func(cmd *cobra.Command, args []string) error {
			if args = withoutDashes(args); len(args) < 2 {
				return errors.New("name a node and a command")
			}
			return nil
		}),
		RunE: func(cmd *cobra.Command, args []string) error {
			testbed, err := newTestbed(*options)
			if err != nil {
				return err
			}
			args = withoutDashes(args)
			code, err := testbed.Exec(cmd.Context(), args[0], args[1:], streams(cmd, std))
			return errors.Join(explain(err), program.Exit(code))
		},
	}
	cmd.Flags().SetInterspersed(false) // what follows the node is the command's
	return withDryRun(cmd, std, func(cmd *cobra.Command, args []string) ([]string, error) {
		testbed, err := newTestbed(*options)
		if err != nil {
			return nil, err
		}
		args = withoutDashes(args)
		argv, err := testbed.ExecArgv(cmd.Context(), args[0], args[1:])
		return []string{commandLine(argv)}, err
	})
}

// withoutDashes takes the -- between the first argument and the others away.
func withoutDashes(args []string) []string {
	if len(args) > 1 && args[1] == "--" {
		return append([]string{args[0]}, args[2:]...)
	}
	return args
}

// streams are those of this command line.
func streams(cmd *cobra.Command, std program.Streams) kind.Streams {
	return kind.Streams{In: cmd.InOrStdin(), Out: std.Out, Err: std.Err}
}
