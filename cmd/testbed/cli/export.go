package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gardener-extensions/registry-cache/internal/program"
	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/diagnostics"
)

func newExportCommand(options *kind.Options, std program.Streams) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "export DIR",
		Short: "Write all that a reader needs to find the cause of a problem into a folder; index.md says what is wrong and what happened",
		Long: "Write all that a reader needs to find the cause of a problem into a folder: what is wrong, one timeline over all sources,\n" +
			"versions, hosts.toml, units and journals of the nodes, objects and events, metrics as they are and as they were at the last\n" +
			"export, logs, the upstreams' access logs, active faults. A testbed that is half dead is fine. Secrets are listed without\n" +
			"their data. The folder is made; an earlier bundle in it is replaced. Prints the path of index.md.",
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
			if asJSON {
				return writeJSON(std.Out, bundle)
			}
			for _, found := range bundle.Findings {
				if found.Certain {
					fmt.Fprintf(std.Err, "   %s\n", found.Problem)
				}
			}
			_, err = fmt.Fprintln(std.Out, bundle.Index)
			return err
		},
	}
	addOutput(cmd, &asJSON, "print JSON, with what was found")
	return cmd
}
