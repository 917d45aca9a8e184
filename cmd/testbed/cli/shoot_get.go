package cli

import (
	"github.com/spf13/cobra"

	"github.com/gardener-extensions/registry-cache/internal/program"
	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/status"
)

func newShootGetCommand(options *kind.Options, std program.Streams) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "get",
		Short: "Show the Shoot: its Extension, its operating system configs, and units and hosts.toml of its nodes",
		Args:  program.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			testbed, err := newTestbed(*options)
			if err != nil {
				return err
			}
			status, err := status.OfShoot(cmd.Context(), testbed)
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
