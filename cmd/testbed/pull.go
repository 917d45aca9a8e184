package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/gardener-extensions/registry-cache/cachetest/pull"
	"github.com/gardener-extensions/registry-cache/internal/program"
	"github.com/gardener-extensions/registry-cache/kind"
)

func newPullCommand(options *kind.Options) *cobra.Command {
	var pulls pull.Options
	cmd := withJSON(&cobra.Command{
		Use:   "pull IMAGE",
		Short: "Pull an image on workers, and print who served each part of it",
		Long: `Pull an image of an upstream with the container runtime of workers. For the manifest, the config
and each layer, it prints who served this part:

  cache hit   a cache served the part from its store, without a request to the upstream
  cache miss  a cache fetched the part from the upstream, and served it
  upstream    the upstream served the part; this is a fallback if the node has a mirror
  node        not downloaded: the node already had this part
  missing     not downloaded: the pull failed
  unknown     downloaded, but the evidence does not show from where

It compares the upstream's access log and the content of the node before and after the pull. The
exit code is 1 if a pull fails.`,
		Example: `  testbed pull $(testbed push --upstream alpha)
  testbed pull alpha.upstream.test/shop/web:v1 --all --fresh`,
		Args: program.Args(cobra.ExactArgs(1)),
		PreRunE: func(_ *cobra.Command, args []string) error {
			pulls.Image = args[0]
			return pulls.Validate()
		},
		RunE: onRunning(options, func(cmd *cobra.Command, testbed *kind.Testbed, _ []string) error {
			report, err := pull.Run(cmd.Context(), testbed, pulls)
			if err != nil && len(report.Pulls) == 0 {
				return err
			}
			return errors.Join(err, answer(cmd, report, report.Write), report.Err()) // also after a failure
		}),
	})
	flags := cmd.Flags()
	flags.StringVar(&pulls.Node, "node", "", "the worker that pulls: its name, or the last part of that name (default: the first worker)")
	flags.BoolVar(&pulls.All, "all", false, "pull on all workers, one after another")
	flags.BoolVar(&pulls.Fresh, "fresh", false, "remove the image from the node before the pull")
	flags.DurationVar(&pulls.Timeout, "timeout", pull.DefaultTimeout, "how long one pull may take")
	return cmd
}
