package main

import (
	"context"
	"errors"
	"os"
	"slices"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/gardener-extensions/registry-cache/internal/program"
	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/develop"
)

func newKubeconfigCommand(options *kind.Options) *cobra.Command {
	return &cobra.Command{
		Use:       "kubeconfig {seed|shoot|garden}",
		Short:     "Print the path of the kubeconfig of a cluster; the garden's is the seed's",
		Example:   "  export KUBECONFIG=$(testbed kubeconfig seed)",
		ValidArgs: kind.Roles,
		Args:      program.Args(cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs)),
		RunE: onTestbed(options, func(cmd *cobra.Command, testbed *kind.Testbed, args []string) error {
			path, err := testbed.Kubeconfig(args[0])
			if err != nil {
				return err
			}
			return line(path)(cmd.OutOrStdout())
		}),
	}
}

func newKubectlCommand(options *kind.Options) *cobra.Command {
	return passThrough(&cobra.Command{
		Use:   "kubectl {seed|shoot|garden} [ARGUMENT...]",
		Short: "Run kubectl in a cluster as administrator; input, output and exit code are passed through",
		Long: `Run kubectl on a control plane node of the cluster, as administrator. The garden (testbed up --garden)
is an API of the seed; its default namespace is that of the project. Standard input, output, exit
code and all arguments are passed through. File names in the arguments refer to the node. Pass a
file of this machine through standard input: -f -.`,
		Example: "  testbed kubectl shoot -n kube-system get pods -o wide\n" +
			"  testbed kubectl seed apply -f - <object.yaml\n" +
			"  testbed kubectl garden get shoots",
		ValidArgs: kind.Roles,
		Args: program.Args(func(_ *cobra.Command, args []string) error {
			if len(args) == 0 || !slices.Contains(kind.Roles, args[0]) {
				return errors.New("name a cluster: seed, shoot or garden")
			}
			return nil
		}),
	}, options, develop.Kubectl)
}

func newExecCommand(options *kind.Options) *cobra.Command {
	return passThrough(&cobra.Command{
		Use:   "exec NODE -- COMMAND [ARGUMENT...]",
		Short: "Run a command, such as bash, on a node; input, output and exit code are passed through",
		Long: `Run a command as root on a node of the seed or the shoot. The node's name can be short: worker2 is a
node of the shoot, and seed-control-plane is a node of the seed. Standard input, output and exit
code are passed through. A command such as bash or top uses the terminal if there is one. The
command does not run in a shell: use bash -c for pipes and variables.`,
		Example: "  testbed exec worker2 -- bash\n  testbed exec worker2 -- crictl images\n" +
			"  testbed exec worker -- bash -c 'cat /etc/containerd/certs.d/*/hosts.toml'",
		Args: program.Args(func(_ *cobra.Command, args []string) error {
			if args = withoutDashes(args); len(args) < 2 {
				return errors.New("name a node and a command")
			}
			return nil
		}),
	}, options, func(ctx context.Context, testbed *kind.Testbed, node string, argv []string, streams develop.Streams) (int, error) {
		streams.Terminal = term.IsTerminal(int(os.Stdin.Fd())) && term.IsTerminal(int(os.Stdout.Fd()))
		return develop.Exec(ctx, testbed, node, argv, streams)
	})
}

// runFunc runs a program on a node or cluster and returns the program's exit code.
type runFunc func(ctx context.Context, testbed *kind.Testbed, name string, args []string, streams develop.Streams) (int, error)

// passThrough makes cmd run another program, which receives all arguments of cmd after the first.
// Standard input, output and exit code are passed through.
func passThrough(cmd *cobra.Command, options *kind.Options, run runFunc) *cobra.Command {
	cmd.Flags().SetInterspersed(false) // flags after the first argument belong to the program
	cmd.RunE = onTestbed(options, func(cmd *cobra.Command, testbed *kind.Testbed, args []string) error {
		args = withoutDashes(args)
		streams := develop.Streams{In: cmd.InOrStdin(), Out: cmd.OutOrStdout(), Err: cmd.ErrOrStderr()}
		code, err := run(cmd.Context(), testbed, args[0], args[1:], streams)
		return errors.Join(err, program.Exit(code))
	})
	return cmd
}

// withoutDashes removes the -- between the first argument and the others.
func withoutDashes(args []string) []string {
	if len(args) > 1 && args[1] == "--" {
		return append([]string{args[0]}, args[2:]...)
	}
	return args
}
