package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/gardener-extensions/registry-cache/bench/cache"
	"github.com/gardener-extensions/registry-cache/internal/program"
	"github.com/gardener-extensions/registry-cache/kind/progress"
)

type cacheOptions struct {
	output
	quick       bool
	from, write string
}

func newCacheCommand(streams program.Streams) *cobra.Command {
	o := cacheOptions{}
	cmd := &cobra.Command{
		Use:   "cache",
		Short: "Compare the cache with a stock distribution, nginx and no cache",
		Args:  program.Args(cobra.NoArgs),
		RunE:  func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), streams) },
	}
	o.addFlags(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&o.quick, "quick", false, "measure fewer rows, once, in two minutes instead of 15")
	flags.StringVar(&o.from, "from", "", "file with the JSON output of an earlier call, instead of a measurement")
	flags.StringVar(&o.write, "write", "", "folder to which "+cache.PageFile+" and its JSON are also written")
	cmd.MarkFlagsMutuallyExclusive("quick", "from")
	return cmd
}

func (o *cacheOptions) run(ctx context.Context, streams program.Streams) error {
	result, err := o.result(ctx, streams.Err)
	if err != nil {
		return err
	}
	if o.write != "" {
		if err := result.Write(o.write); err != nil {
			return program.Environment(err)
		}
	}
	return o.report(result, result.Goals, streams.Out)
}

// result reads an earlier result or measures a new one.
func (o *cacheOptions) result(ctx context.Context, messages io.Writer) (cache.Report, error) {
	if o.from != "" {
		result, err := cache.Read(o.from)
		return result, program.Usage(err)
	}
	if err := o.prepare(); err != nil {
		return cache.Report{}, err
	}
	settings := cache.Options{Folder: o.folder, Quick: o.quick, Progress: progress.New(messages)}
	err := settings.Progress.Step(ctx, "programs", func(ctx context.Context) (err error) {
		settings.Programs, settings.Versions, err = cache.Prepare(ctx, o.folder)
		return err
	})
	if err != nil {
		return cache.Report{}, program.Environment(err)
	}
	result, err := cache.Measure(ctx, settings)
	if err != nil {
		return result, fmt.Errorf("%w (logs: %s)", err, o.folder)
	}
	return result, nil
}
