package main

import (
	"github.com/spf13/cobra"

	"github.com/gardener-extensions/registry-cache/internal/program"
)

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
