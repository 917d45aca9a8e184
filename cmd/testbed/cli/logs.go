package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gardener-extensions/registry-cache/internal/program"
	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/logs"
)

func newLogsCommand(options *kind.Options, std program.Streams) *cobra.Command {
	var (
		wanted logs.Options
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "logs COMPONENT [NAME]",
		Short: "Print the logs of a component, from all its places, ordered by time",
		Long: `Shows the logs of a component, of all its places in the order of time:

  cache      the caches in the shoot
  node       containerd, kubelet, gardener-node-agent and the script's unit, on the nodes of the shoot
  upstream   the access logs of the upstreams, a JSON record a line: who asked what, and what was answered
  webhook    what the webhooks of extension and admission say
  extension  the extension in the seed
  grm        gardener-resource-manager, of the shoot and of the seed
  gna        gardener-node-agent on the workers

NAME keeps one place of several: an upstream, a node, a unit of a node.`,
		Example: "  testbed logs -f cache alpha\n  testbed logs --since 5m node worker2/containerd",
		Args:    program.Args(cobra.RangeArgs(1, 2)),
		ValidArgs: func() (names []string) {
			for _, component := range logs.Components() {
				names = append(names, string(component))
			}
			return names
		}(),
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if wanted.Component, err = logs.ParseComponent(args[0]); err != nil {
				return err
			}
			wanted.Name = strings.Join(args[1:], "")
			if wanted.Since < 0 {
				return program.Usage(fmt.Errorf("--since %s: want a duration that is not negative", wanted.Since))
			}
			testbed, err := newTestbed(*options)
			if err != nil {
				return err
			}
			return logs.Read(cmd.Context(), testbed, wanted, printLine(std, asJSON))
		},
	}
	cmd.Flags().BoolVarP(&wanted.Follow, "follow", "f", false, "go on with what is new, until Ctrl-C")
	cmd.Flags().DurationVar(&wanted.Since, "since", time.Duration(0), "how far back, for example 5m (default all there is)")
	addOutput(cmd, &asJSON, "print one JSON object a line")
	return cmd
}

func printLine(std program.Streams, asJSON bool) func(logs.Line) {
	if !asJSON {
		return func(line logs.Line) { fmt.Fprintln(std.Out, line.Format()) }
	}
	encoder := json.NewEncoder(std.Out)
	return func(line logs.Line) { _ = encoder.Encode(line) } // to a terminal or a pipe: there is nobody left to tell
}
