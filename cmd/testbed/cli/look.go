package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/gardener-extensions/registry-cache/internal/program"
	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/diagnostics"
	"github.com/gardener-extensions/registry-cache/kind/diagnostics/archive"
)

func newExportCommand(options *kind.Options) *cobra.Command {
	return withJSON(&cobra.Command{
		Use:   "export DIR",
		Short: "Write a folder and a .tar.gz with everything needed to find the cause of a problem",
		Long: `Write a bundle to a folder: findings, a timeline over all sources, versions, hosts.toml, units and
journals of the nodes, objects and events, metrics now and at the previous export, logs, access logs
of the upstreams, and active faults. Read index.md first. The command also works if only parts of
the testbed run. Secrets are listed without their data.

The folder is created; a previous bundle in it is replaced. DIR.tar.gz has the same files, to attach
to an issue. The paths of index.md and of the archive are printed.`,
		Example: "  testbed export before && testbed pull IMAGE; testbed export after",
		Args:    program.Args(cobra.ExactArgs(1)),
		RunE: onTestbed(options, func(cmd *cobra.Command, testbed *kind.Testbed, args []string) error {
			bundle, err := diagnostics.Export(cmd.Context(), testbed, args[0])
			if err != nil {
				return err
			}
			packed, err := archive.Write(args[0])
			if err != nil {
				return err
			}
			written := struct {
				*diagnostics.Bundle
				Archive string `json:"archive"`
			}{bundle, packed}
			return answer(cmd, written, func(out io.Writer) error {
				for _, found := range bundle.Findings {
					if found.Certain {
						fmt.Fprintf(cmd.ErrOrStderr(), "   %s\n", found.Problem)
					}
				}
				_, err := fmt.Fprintf(out, "%s\n%s\n", bundle.Index, packed)
				return err
			})
		}),
	}, "print JSON, with the findings")
}
