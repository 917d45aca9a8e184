package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gardener-extensions/registry-cache/internal/program"
	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/pull"
)

func newPushCommand(options *kind.Options, std program.Streams) *cobra.Command {
	push, asJSON := pull.PushOptions{}, false
	cmd := &cobra.Command{
		Use:   "push",
		Short: "Push a new image of random content to an upstream, and print its reference",
		Example: `  testbed push --upstream beta --layers 10 --size 5Mi
  testbed pull $(testbed push)`,
		Args: program.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := push.Validate(); err != nil {
				return err
			}
			testbed, err := attach(cmd, *options)
			if err != nil {
				return err
			}
			pushed, err := pull.Push(cmd.Context(), testbed, push)
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(std.Out, pushed)
			}
			_, err = fmt.Fprintln(std.Out, pushed.Reference)
			return err
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&push.Upstream, "upstream", "alpha", "the upstream, by its host or the first part of it")
	flags.StringVar(&push.Name, "name", "", "repository and tag, for example shop/web:v1 (default a random repository)")
	flags.StringVar(&push.Base, "base", "", "an image of the same upstream; the new one has all of its layers, too")
	flags.IntVar(&push.Layers, "layers", 2, "how many layers of random content, beside that with the program")
	flags.StringVar(&push.Size, "size", "2Mi", "how large each of them is")
	addOutput(cmd, &asJSON, "print JSON, with digest and parts")
	completeFlag(cmd, "upstream", options, nameUpstreams)
	return cmd
}
