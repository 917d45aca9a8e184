package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gardener-extensions/registry-cache/internal/program"
	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/develop"
)

func newImageCommand(options *kind.Options, std program.Streams) *cobra.Command {
	image := &cobra.Command{
		Use:   "image",
		Short: "Build images for the inner loop",
		Args:  cobra.ArbitraryArgs,
		RunE:  program.Verbs,
	}
	image.AddCommand(newImageBuildCommand(options, std))
	return image
}

func newImageBuildCommand(options *kind.Options, std program.Streams) *cobra.Command {
	var (
		build  develop.ImageBuild
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:       "build NAME --tag REFERENCE",
		Short:     "Build " + strings.Join(kind.ShippedImages(), " or ") + " from the sources, and put it on the nodes that run it",
		Args:      program.Args(cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs)),
		ValidArgs: kind.ShippedImages(),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := build.Validate(); err != nil {
				return program.Usage(fmt.Errorf("--tag: %w", err))
			}
			testbed, err := attach(cmd, *options)
			if err != nil {
				return err
			}
			build.Name = args[0]
			built, err := develop.BuildImage(cmd.Context(), testbed, build)
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(std.Out, map[string]string{"name": build.Name, "image": built})
			}
			_, err = fmt.Fprintln(std.Out, built)
			return err
		},
	}
	addOutput(cmd, &asJSON, "print JSON")
	cmd.Flags().BoolVar(&build.Debug, "debug", false, "with symbols and without optimizations of our own code, for testbed debug")
	cmd.Flags().StringVar(&build.Reference, "tag", "", "what the Docker Engine calls the image: a repository and a tag")
	return cmd
}

func newExtensionCommand(options *kind.Options, std program.Streams) *cobra.Command {
	extension := &cobra.Command{
		Use:   "extension",
		Short: "Install the extension in the seed, for the inner loop",
		Args:  cobra.ArbitraryArgs,
		RunE:  program.Verbs,
	}
	extension.AddCommand(
		&cobra.Command{
			Use:   "render",
			Short: "Render a ControllerDeployment from standard input as gardenlet does in the seed",
			Args:  program.Args(cobra.NoArgs),
			RunE: func(cmd *cobra.Command, _ []string) error {
				testbed, err := attach(cmd, *options)
				if err != nil {
					return err
				}
				return develop.RenderExtension(cmd.Context(), testbed, cmd.InOrStdin(), std.Out)
			},
		},
		&cobra.Command{
			Use:   "roll-out",
			Short: "Wait for the installed extension, reconcile the Shoots, and wait for their caches",
			Args:  program.Args(cobra.NoArgs),
			RunE: func(cmd *cobra.Command, _ []string) error {
				testbed, err := attach(cmd, *options)
				if err != nil {
					return err
				}
				return develop.Rollout(cmd.Context(), testbed)
			},
		},
	)
	return extension
}
