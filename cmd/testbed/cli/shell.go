package cli

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/gardener-extensions/registry-cache/internal/program"
	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/shell"
)

func newShellCommand(options *kind.Options) *cobra.Command {
	return completed(&cobra.Command{
		Use:   "shell NODE",
		Short: "Open a shell on a node; without a terminal bash reads standard input",
		Long: "Open a shell on a node of either cluster, as root. The node may be named without what all names begin with: worker2\n" +
			"of the shoot, seed-control-plane. The exit code is that of the shell.",
		Args: program.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			testbed, err := newTestbed(*options)
			if err != nil {
				return err
			}
			argv, err := shell.Argv(cmd.Context(), testbed, args[0], hasTerminal())
			if err != nil {
				return err
			}
			return become(argv)
		},
	}, options, only(nameNodes))
}

func hasTerminal() bool { return term.IsTerminal(int(os.Stdin.Fd())) }

// become replaces this process by the program: terminal, signals and exit code are its own. It
// returns only after a failure.
func become(argv []string) error {
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return program.Environment(fmt.Errorf("open the shell: %w", err))
	}
	return fmt.Errorf("run %s: %w", path, syscall.Exec(path, argv, os.Environ()))
}
