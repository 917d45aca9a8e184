package main

import (
	"github.com/spf13/cobra"

	"github.com/gardener-extensions/registry-cache/cachetest/pull"
	"github.com/gardener-extensions/registry-cache/internal/program"
	"github.com/gardener-extensions/registry-cache/kind"
)

func newPushCommand(options *kind.Options) *cobra.Command {
	var push pull.PushOptions
	cmd := &cobra.Command{
		Use:   "push",
		Short: "Push a new image of random content to an upstream, and print its reference",
		Example: `  testbed push --upstream beta --layers 10 --size 5Mi
  testbed pull $(testbed push)`,
		Args:    program.Args(cobra.NoArgs),
		PreRunE: func(*cobra.Command, []string) error { return push.Validate() },
		RunE: onRunning(options, func(cmd *cobra.Command, testbed *kind.Testbed, _ []string) error {
			reference, err := pull.Push(cmd.Context(), testbed, push)
			if err != nil {
				return err
			}
			return line(reference)(cmd.OutOrStdout())
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&push.Upstream, "upstream", "alpha", "the upstream: its host name, or the first label of that name")
	flags.IntVar(&push.Layers, "layers", 2, "number of layers with random content; one more layer contains a program")
	flags.StringVar(&push.Size, "size", "2Mi", "size of each random layer")
	return cmd
}
