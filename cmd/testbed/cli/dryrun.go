package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/gardener-extensions/registry-cache/internal/program"
	"github.com/gardener-extensions/registry-cache/kind"
)

// plan says what a command line would do, one line for each thing.
type plan func(cmd *cobra.Command, args []string) ([]string, error)

// withDryRun gives a command the flag --dry-run: what would be done is printed then, and nothing is
// changed. With the flag --json of the command the lines are an array.
func withDryRun(cmd *cobra.Command, std program.Streams, would plan) *cobra.Command {
	var dryRun bool
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "print the steps, and change nothing")
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !dryRun {
			return run(cmd, args)
		}
		lines, err := would(cmd, args)
		if err != nil {
			return err
		}
		asJSON := cmd.Flags().Lookup("json")
		return writePlan(std.Out, lines, asJSON != nil && asJSON.Value.String() == "true")
	}
	return cmd
}

func writePlan(out io.Writer, lines []string, asJSON bool) error {
	if asJSON {
		return writeJSON(out, append([]string{}, lines...)) // [], not null
	}
	for _, line := range lines {
		if _, err := fmt.Fprintln(out, line); err != nil {
			return err
		}
	}
	return nil
}

// onTestbed is a plan for which the testbed has to be up.
func onTestbed(options *kind.Options, would func(cmd *cobra.Command, testbed *kind.Testbed, args []string) ([]string, error)) plan {
	return func(cmd *cobra.Command, args []string) ([]string, error) {
		testbed, err := attach(cmd, *options)
		if err != nil {
			return nil, err
		}
		return would(cmd, testbed, args)
	}
}
