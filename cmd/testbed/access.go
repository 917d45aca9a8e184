package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/gardener-extensions/registry-cache/internal/program"
	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/develop"
)

func newKubeconfigCommand(options *kind.Options) *cobra.Command {
	return &cobra.Command{
		Use:       "kubeconfig {seed|shoot}",
		Short:     "Print the path of the kubeconfig of a cluster",
		Example:   "  export KUBECONFIG=$(testbed kubeconfig seed)",
		ValidArgs: []string{kind.RoleSeed, kind.RoleShoot},
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
	roles := []string{kind.RoleSeed, kind.RoleShoot}
	return passThrough(&cobra.Command{
		Use:   "kubectl {seed|shoot} [ARGUMENT...]",
		Short: "Run kubectl in a cluster as administrator; input, output and exit code are passed through",
		Long: `Run kubectl on a control plane node of the cluster, as administrator. Standard input, output, exit
code and all arguments are passed through. File names in the arguments refer to the node. Pass a
file of this machine through standard input: -f -.`,
		Example: "  testbed kubectl shoot -n kube-system get pods -o wide\n" +
			"  testbed kubectl seed apply -f - <object.yaml",
		ValidArgs: roles,
		Args: program.Args(func(_ *cobra.Command, args []string) error {
			if len(args) == 0 || !slices.Contains(roles, args[0]) {
				return errors.New("name a cluster, seed or shoot")
			}
			return nil
		}),
	}, options, develop.Kubectl)
}

func newExecCommand(options *kind.Options) *cobra.Command {
	return passThrough(&cobra.Command{
		Use:   "exec NODE -- COMMAND [ARGUMENT...]",
		Short: "Run a command on a node; input, output and exit code are passed through",
		Long: `Run a command as root on a node of the seed or the shoot. The node's name can be short: worker2 is a
node of the shoot, seed-control-plane is a node of the seed. Standard input, output and exit code
are passed through. The command does not run in a shell: use bash -c for pipes and variables. For a
shell with a terminal use testbed shell.`,
		Example: "  testbed exec worker2 -- crictl images\n" +
			"  testbed exec worker -- bash -c 'cat /etc/containerd/certs.d/*/hosts.toml'",
		Args: program.Args(func(_ *cobra.Command, args []string) error {
			if args = withoutDashes(args); len(args) < 2 {
				return errors.New("name a node and a command")
			}
			return nil
		}),
	}, options, develop.Exec)
}

// runFunc runs a program on a node or cluster and returns the program's exit code.
type runFunc func(ctx context.Context, testbed *kind.Testbed, name string, args []string, streams develop.Streams) (int, error)

// passThrough makes cmd run another program, which gets all arguments of cmd after the first.
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

func newShellCommand(options *kind.Options) *cobra.Command {
	return &cobra.Command{
		Use:   "shell NODE",
		Short: "Open a shell on a node; without a terminal, it reads commands from standard input",
		Long: `Open a shell as root on a node of the seed or the shoot. The node's name can be short: worker2 is a
node of the shoot, seed-control-plane is a node of the seed. The exit code is that of the shell.`,
		Args: program.Args(cobra.ExactArgs(1)),
		RunE: onTestbed(options, func(cmd *cobra.Command, testbed *kind.Testbed, args []string) error {
			argv, err := develop.Shell(cmd.Context(), testbed, args[0], term.IsTerminal(int(os.Stdin.Fd())))
			if err != nil {
				return err
			}
			path, err := exec.LookPath(argv[0])
			if err != nil {
				return program.Environment(fmt.Errorf("open the shell: %w", err))
			}
			// The shell replaces this process, and so gets its terminal, signals and exit code.
			return fmt.Errorf("run %s: %w", path, syscall.Exec(path, argv, os.Environ()))
		}),
	}
}
