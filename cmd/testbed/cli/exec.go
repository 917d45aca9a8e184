package cli

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/gardener-extensions/registry-cache/internal/program"
	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/shell"
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
	}
	return passedOn(completed(cmd, options, only(nameNodes)), options, std, shell.Exec)
}
