package cli

import (
	"github.com/spf13/cobra"

	"github.com/gardener-extensions/registry-cache/kind"
)

func newTestCommand(options *kind.Options) *cobra.Command {
	var list bool
	cmd := &cobra.Command{
		Use:   "test [NAME...]",
		Short: "Run the scenarios with these names (default: those of the fast lane), and keep the testbed",
		Long: `Run the scenarios with these names, or those of the fast lane. The testbed is created if it does not
run, and kept. Names are regular expressions; numbers of field bugs (s22) stand for their scenarios.
The same as make e2e KEEP=1 RUN='^(NAME|NAME)$'.`,
		Example: "  testbed test --list\n  testbed test pull-through cache-down",
		RunE: onTestbed(options, func(cmd *cobra.Command, testbed *kind.Testbed, args []string) error {
			if list {
				return runScenarios(cmd, testbed, nil, "LIST=1", "LANE=full")
			}
			return runScenarios(cmd, testbed, args)
		}),
	}
	cmd.Flags().BoolVar(&list, "list", false, "print the names of all scenarios, and run none")
	return cmd
}
