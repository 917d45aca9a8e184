package main

import (
	"fmt"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/spf13/cobra"

	"github.com/gardener-extensions/registry-cache/internal/program"
	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/develop"
)

func newImageCommand(options *kind.Options) *cobra.Command {
	var (
		build develop.ImageBuild
		tag   string
	)
	cmd := withJSON(&cobra.Command{
		Use:       "build NAME --tag REFERENCE",
		Short:     "Build " + strings.Join(options.Extension.AllImages(), " or ") + " from the sources, and load it on the nodes that run it",
		Args:      program.Args(cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs)),
		ValidArgs: options.Extension.AllImages(),
		PreRunE: func(_ *cobra.Command, args []string) (err error) {
			build.Name = args[0]
			if build.Reference, err = name.NewTag(tag, name.StrictValidation); err != nil {
				err = fmt.Errorf("--tag: %w; want a registry, repository and tag, for example registry-cache.testbed/extension:v1", err)
			}
			return program.Usage(err)
		},
		RunE: onRunning(options, func(cmd *cobra.Command, testbed *kind.Testbed, _ []string) error {
			built, err := develop.BuildImage(cmd.Context(), testbed, build)
			if err != nil {
				return err
			}
			return answer(cmd, map[string]string{"name": build.Name, "image": built}, line(built))
		}),
	})
	cmd.Flags().BoolVar(&build.Debug, "debug", false, "keep symbols and do not optimize the code of this repository, for make debug")
	cmd.Flags().StringVar(&tag, "tag", "", "name of the image in the Docker Engine: repository and tag")
	return group(&cobra.Command{Use: "image", Short: "Build images for the inner loop"}, cmd)
}

func newExtensionCommand(options *kind.Options) *cobra.Command {
	return group(&cobra.Command{Use: "extension", Short: "Run a step of make dev: render the extension for the seed, or wait for its rollout"},
		&cobra.Command{
			Use:   "render",
			Short: "Render a ControllerDeployment from standard input as gardenlet does in the seed",
			Args:  program.Args(cobra.NoArgs),
			RunE: onRunning(options, func(cmd *cobra.Command, testbed *kind.Testbed, _ []string) error {
				return develop.RenderExtension(cmd.Context(), testbed, cmd.InOrStdin(), cmd.OutOrStdout())
			}),
		},
		&cobra.Command{
			Use:   "roll-out",
			Short: "Wait until the installed extension is ready, reconcile the Shoots, and wait for their caches",
			Args:  program.Args(cobra.NoArgs),
			RunE: onRunning(options, func(cmd *cobra.Command, testbed *kind.Testbed, _ []string) error {
				return develop.Rollout(cmd.Context(), testbed)
			}),
		},
	)
}
