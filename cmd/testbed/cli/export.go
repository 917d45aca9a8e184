package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gardener-extensions/registry-cache/internal/program"
	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/diagnostics"
	"github.com/gardener-extensions/registry-cache/kind/diagnostics/archive"
)

func newExportCommand(options *kind.Options, std program.Streams) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "export DIR",
		Short: "Write a folder and a .tar.gz with everything needed to find the cause of a problem",
		Long: `Write a bundle to a folder: findings, a timeline over all sources, versions, hosts.toml, units and
journals of the nodes, objects and events, metrics now and at the previous export, logs, access logs
of the upstreams, and active faults. index.md is the file to read first. A testbed of which only
parts run is enough. Secrets are listed without their data.

The folder is created; a previous bundle in it is replaced. DIR.tar.gz has the same files, to attach
to an issue. The paths of index.md and of the archive are printed.`,
		Example: "  testbed export before && testbed pull IMAGE; testbed export after",
		Args:    program.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			testbed, err := newTestbed(*options)
			if err != nil {
				return err
			}
			bundle, err := diagnostics.Export(cmd.Context(), testbed, args[0])
			if err != nil {
				return err
			}
			packed, err := archive.Write(args[0])
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(std.Out, struct {
					*diagnostics.Bundle
					Archive string `json:"archive"`
				}{bundle, packed})
			}
			for _, found := range bundle.Findings {
				if found.Certain {
					fmt.Fprintf(std.Err, "   %s\n", found.Problem)
				}
			}
			_, err = fmt.Fprintf(std.Out, "%s\n%s\n", bundle.Index, packed)
			return err
		},
	}
	addOutput(cmd, &asJSON, "print JSON, with the findings")
	return cmd
}
