package cli

import (
	"github.com/spf13/cobra"

	"github.com/gardener-extensions/registry-cache/internal/program"
	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/bringup"
	"github.com/gardener-extensions/registry-cache/kind/status"
)

func newDownCommand(options *kind.Options, std program.Streams) *cobra.Command {
	return withDryRun(&cobra.Command{
		Use:   "down",
		Short: "Remove the testbed: containers, volumes, networks and processes",
		Args:  program.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			testbed, err := newTestbed(*options)
			if err != nil {
				return err
			}
			return bringup.Down(cmd.Context(), testbed)
		},
	}, std, func(cmd *cobra.Command, _ []string) ([]string, error) {
		testbed, err := newTestbed(*options)
		if err != nil {
			return nil, err
		}
		return bringup.PlanDown(cmd.Context(), testbed)
	})
}

func newStatusCommand(options *kind.Options, std program.Streams) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Print the state of clusters, nodes, caches and upstreams, with versions",
		Args:  program.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			testbed, err := newTestbed(*options)
			if err != nil {
				return err
			}
			status, err := status.OfTestbed(cmd.Context(), testbed)
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(std.Out, status)
			}
			return status.Write(std.Out)
		},
	}
	addOutput(cmd, &asJSON, "print JSON")
	return cmd
}
