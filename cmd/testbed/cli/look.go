package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gardener-extensions/registry-cache/internal/program"
	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/diagnostics"
	"github.com/gardener-extensions/registry-cache/kind/diagnostics/archive"
	"github.com/gardener-extensions/registry-cache/kind/logs"
)

func newLogsCommand(options *kind.Options) *cobra.Command {
	var wanted logs.Options
	cmd := withJSON(&cobra.Command{
		Use:   "logs COMPONENT [NAME]",
		Short: "Print the logs of a component, merged and ordered by time",
		Long: `Print the logs of a component, merged and ordered by time:

  cache      the caches in the shoot
  node       containerd, kubelet, gardener-node-agent and configure-containerd-registries, on nodes of the shoot
  upstream   the access logs of the upstreams, one JSON record per request
  webhook    the webhooks of extension and admission
  extension  the extension in the seed
  grm        gardener-resource-manager of the shoot and of the seed
  gna        gardener-node-agent on the workers

NAME limits the output to one upstream, one node, or one unit of a node.`,
		Example: "  testbed logs -f cache alpha\n  testbed logs --since 5m node worker2/containerd",
		Args:    program.Args(cobra.RangeArgs(1, 2)),
		PreRunE: func(_ *cobra.Command, args []string) (err error) {
			if wanted.Component, err = logs.ParseComponent(args[0]); err != nil {
				return err
			}
			wanted.Name = strings.Join(args[1:], "")
			return checkSince(wanted.Since)
		},
		RunE: onTestbed(options, func(cmd *cobra.Command, testbed *kind.Testbed, _ []string) error {
			return logs.Read(cmd.Context(), testbed, wanted, eachRecord(cmd, logs.Line.Format))
		}),
	}, "print one JSON object per line")
	for _, component := range logs.Components() {
		cmd.ValidArgs = append(cmd.ValidArgs, string(component))
	}
	cmd.Flags().BoolVarP(&wanted.Follow, "follow", "f", false, "wait for new lines, until Ctrl-C")
	cmd.Flags().DurationVar(&wanted.Since, "since", 0, "print only the lines of the last `duration`, for example 5m (default: all lines)")
	return cmd
}

func checkSince(since time.Duration) error {
	if since < 0 {
		return program.Usage(fmt.Errorf("--since %s: want a duration that is not negative", since))
	}
	return nil
}

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
