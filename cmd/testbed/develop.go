package main

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gardener-extensions/registry-cache/internal/program"
	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/develop"
	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
)

func newImageCommand(options *kind.Options) *cobra.Command {
	var build develop.ImageBuild
	cmd := withJSON(&cobra.Command{
		Use:       "build NAME --tag REFERENCE",
		Short:     "Build " + strings.Join(options.Extension.AllImages(), " or ") + " from the sources, and load it on the nodes that run it",
		Args:      program.Args(cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs)),
		ValidArgs: options.Extension.AllImages(),
		PreRunE: func(_ *cobra.Command, args []string) error {
			build.Name = args[0]
			if err := build.Validate(); err != nil {
				return program.Usage(fmt.Errorf("--tag: %w", err))
			}
			return nil
		},
		RunE: onRunning(options, func(cmd *cobra.Command, testbed *kind.Testbed, _ []string) error {
			built, err := develop.BuildImage(cmd.Context(), testbed, build)
			if err != nil {
				return err
			}
			return answer(cmd, map[string]string{"name": build.Name, "image": built}, line(built))
		}),
	}, "print JSON")
	cmd.Flags().BoolVar(&build.Debug, "debug", false, "keep symbols and do not optimize the code of this repository, for testbed debug")
	cmd.Flags().StringVar(&build.Reference, "tag", "", "name of the image in the Docker Engine: repository and tag")
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

// debugger is the path of Delve in the repository.
const debugger = "bin/dlv"

func newDebugCommand(options *kind.Options) *cobra.Command {
	var (
		port   uint16
		target spec.Target
	)
	cmd := withJSON(&cobra.Command{
		Use:   "debug TARGET",
		Short: "Attach Delve to the extension or a cache, until Ctrl-C",
		Long: `Attach Delve to the process of the extension or of a cache, on the node that runs it, and print the
address for dlv connect or an editor. The process keeps running until a client pauses
it. Ctrl-C detaches Delve, and the process continues. The testbed must run a debug build, see
"make dev ARGS=--profile=debug" in docs/inner-loop.md. Use "make debug" to build Delve and run this
command.`,
		Example: "  testbed debug extension\n  testbed debug cache/alpha --port 4001",
		Args:    program.Args(cobra.ExactArgs(1)),
		PreRunE: func(_ *cobra.Command, args []string) (err error) {
			target, err = spec.ParseTarget(args[0])
			return err
		},
		RunE: onRunning(options, func(cmd *cobra.Command, testbed *kind.Testbed, _ []string) error {
			found, err := develop.FindTarget(cmd.Context(), testbed, target, int(port))
			if err != nil {
				return err
			}
			var failed error
			err = develop.Debug(cmd.Context(), testbed, found, debugger, cmd.ErrOrStderr(), func() {
				failed = answer(cmd, found, line(found.Address))
			})
			if errors.Is(err, fs.ErrNotExist) {
				return program.Environment(fmt.Errorf("%s not found; run: make %s", debugger, debugger))
			}
			return errors.Join(err, failed)
		}),
	}, "print JSON: node, pod, process and address")
	cmd.Flags().Uint16Var(&port, "port", develop.DefaultDebugPort, "port on which Delve listens on the node")
	return cmd
}
