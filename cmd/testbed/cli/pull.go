package cli

import (
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/gardener-extensions/registry-cache/internal/program"
	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/pull"
)

func newPullCommand(options *kind.Options, std program.Streams) *cobra.Command {
	pulls, asJSON := pull.Options{}, false
	cmd := &cobra.Command{
		Use:   "pull IMAGE",
		Short: "Pull an image on workers, and print who served each part of it",
		Long: `Pulls an image of an upstream by the container runtime of workers, and prints for manifest, config and each layer who
served it:

  cache hit   a cache, from its store: the node did not have it and has it now, and the upstream was not asked for it
  cache miss  a cache, which fetched it from the upstream for this pull
  upstream    the upstream itself, which the node asked: a fallback, if the node has a mirror
  node        nobody had to, the node had it before
  missing     nobody: the pull failed

It rests on the upstream's access log and on what the node has stored, before and after. Exits with 1 if a pull fails.`,
		Example: `  testbed pull $(testbed push --upstream alpha)
  testbed pull alpha.upstream.test/shop/web:v1 --all --times 3 --fresh`,
		Args: program.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			pulls.Image = args[0]
			if err := pulls.Validate(); err != nil {
				return err
			}
			testbed, err := attach(cmd, *options)
			if err != nil {
				return err
			}
			report, err := pull.Run(cmd.Context(), testbed, pulls)
			// What was found is printed also when something broke in between.
			if err == nil || len(report.Pulls) > 0 {
				err = errors.Join(err, printPulls(std.Out, report, asJSON), report.Err())
			}
			return err
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&pulls.Node, "node", "", "the worker that pulls, by its name or the last part of it (default the first one)")
	flags.BoolVar(&pulls.All, "all", false, "pull on all workers")
	flags.IntVar(&pulls.Times, "times", 1, "how often each node pulls")
	flags.IntVar(&pulls.Parallel, "parallel", 1, "how many nodes pull at the same time")
	flags.BoolVar(&pulls.Fresh, "fresh", false, "remove the image from the node before each pull")
	flags.DurationVar(&pulls.Timeout, "timeout", pull.DefaultTimeout, "how long one pull may take")
	addOutput(cmd, &asJSON, "print JSON")
	completeFlag(cmd, "node", options, nameWorkers)
	return cmd
}

func printPulls(out io.Writer, report *pull.Report, asJSON bool) error {
	if !asJSON {
		return report.Write(out)
	}
	return writeJSON(out, report)
}
