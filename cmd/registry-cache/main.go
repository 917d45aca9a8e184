package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/gardener-extensions/registry-cache/internal/program"
)

func main() { os.Exit(program.Main(newRootCommand)) }

func newRootCommand(std program.Streams) *cobra.Command {
	root := &cobra.Command{
		Use:   "registry-cache",
		Short: "Run a pull-through cache for one upstream registry, or clean a node that used it",
		Args:  cobra.ArbitraryArgs,
		RunE:  program.Verbs,
	}
	root.AddCommand(newServeCommand(std), newCleanCommand(std), newPauseCommand(std))
	return root
}

func newPauseCommand(std program.Streams) *cobra.Command {
	return &cobra.Command{
		Use:   "pause",
		Short: "Wait for SIGTERM, to keep a pod running after its init container",
		Args:  program.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			fmt.Fprintln(std.Err, "pausing until SIGTERM")
			<-cmd.Context().Done()
			return nil
		},
	}
}
