package cli

import (
	"errors"
	"os/exec"

	"github.com/spf13/cobra"

	"github.com/gardener-extensions/registry-cache/internal/program"
	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/plantedbugs"
)

func newTestCommand(options *kind.Options) *cobra.Command {
	var list bool
	cmd := &cobra.Command{
		Use:   "test [NAME...]",
		Short: "Run the scenarios with these names (default: those of the fast lane), and keep the testbed",
		Long: `Run the scenarios with these names, or those of the fast lane. The testbed is created if it does not
run, and kept. Names are regular expressions. The same as make e2e KEEP=1 RUN='^(NAME|NAME)$'.`,
		Example: "  testbed test --list\n  testbed test pull-through cache-down",
		RunE: onTestbed(options, func(cmd *cobra.Command, testbed *kind.Testbed, args []string) error {
			if testbed.Prefix != kind.DefaultPrefix {
				return program.Usage(errors.New("the scenarios run on the default testbed only: omit --prefix"))
			}
			err := plantedbugs.RunScenarios(cmd.Context(), testbed, args, list, cmd.OutOrStdout(), cmd.ErrOrStderr())
			if failed := (*exec.ExitError)(nil); errors.As(err, &failed) && failed.Exited() {
				return program.Exit(failed.ExitCode())
			}
			return err
		}),
	}
	cmd.Flags().BoolVar(&list, "list", false, "print the names of all scenarios, and run none")
	return cmd
}
