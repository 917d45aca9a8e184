package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/gardener-extensions/registry-cache/internal/program"
)

func main() { os.Exit(program.Main(newRootCommand)) }

func newRootCommand(std program.Streams) *cobra.Command {
	root := &cobra.Command{
		Use:   "registry-cache-admission",
		Short: "Validate Shoots that use the registry cache, in the garden and offline",
		Args:  cobra.ArbitraryArgs,
		RunE:  program.Verbs,
	}
	root.AddCommand(newServeCommand(), newValidateCommand(std, os.Stdin))
	return root
}
