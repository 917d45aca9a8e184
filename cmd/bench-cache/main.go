package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/gardener-extensions/registry-cache/bench/cache"
	"github.com/gardener-extensions/registry-cache/bench/cache/report"
	"github.com/gardener-extensions/registry-cache/internal/program"
	"github.com/gardener-extensions/registry-cache/kind/progress"
)

func main() { os.Exit(program.Main(newCommand)) }

type options struct {
	quick, json, strict bool
	folder, from, write string
}

func newCommand(streams program.Streams) *cobra.Command {
	o := options{}
	cmd := &cobra.Command{
		Use:   "bench-cache",
		Short: "Compare the cache with a stock distribution, nginx and no cache",
		Args:  program.Args(cobra.NoArgs),
		RunE:  func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), streams) },
	}
	flags := cmd.Flags()
	flags.BoolVar(&o.quick, "quick", false, "measure fewer rows, once, in two minutes instead of 15")
	flags.BoolVar(&o.json, "json", false, "print JSON instead of Markdown")
	flags.BoolVar(&o.strict, "strict", false, "exit with 1 if a goal is missed")
	flags.StringVar(&o.folder, "folder", filepath.Join("_artifacts", "bench-cache"), "folder for programs, volumes and logs")
	flags.StringVar(&o.from, "from", "", "file with the JSON output of an earlier call, instead of a measurement")
	flags.StringVar(&o.write, "write", "", "folder to which "+report.Page+", its JSON and its plots are also written")
	cmd.MarkFlagsMutuallyExclusive("quick", "from")
	return cmd
}

func (o *options) run(ctx context.Context, streams program.Streams) error {
	result, err := o.result(ctx, streams.Err)
	if err != nil {
		return err
	}
	if o.write != "" {
		if err := report.Write(o.write, result); err != nil {
			return program.Environment(err)
		}
	}
	if err := o.print(result, streams.Out); err != nil {
		return err
	}
	for _, goal := range result.Goals {
		if o.strict && goal.Judged && !goal.Held {
			return fmt.Errorf("missed goal: %s (%s)", goal.Name, goal.Missed[0])
		}
	}
	return nil
}

// result reads an earlier result or measures a new one.
func (o *options) result(ctx context.Context, messages io.Writer) (cache.Report, error) {
	if o.from != "" {
		result, err := report.Read(o.from)
		return result, program.Usage(err)
	}
	folder, err := filepath.Abs(o.folder)
	if err != nil {
		return cache.Report{}, program.Usage(fmt.Errorf("--folder: %w", err))
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return cache.Report{}, program.Environment(fmt.Errorf("create the folder for volumes: %w", err))
	}
	settings := cache.Options{Folder: folder, Quick: o.quick, Progress: progress.New(messages)}
	err = settings.Progress.Step(ctx, "programs", func(ctx context.Context) (err error) {
		settings.Programs, settings.Versions, err = cache.Prepare(ctx, folder)
		return err
	})
	if err != nil {
		return cache.Report{}, program.Environment(err)
	}
	result, err := cache.Measure(ctx, settings)
	if err != nil {
		return result, fmt.Errorf("%w (logs: %s)", err, folder)
	}
	return result, nil
}

func (o *options) print(result cache.Report, out io.Writer) error {
	text := []byte(report.Markdown(result))
	if o.json {
		var err error
		if text, err = json.MarshalIndent(result, "", "  "); err != nil {
			return fmt.Errorf("encode the report: %w", err)
		}
		text = append(text, '\n')
	}
	if _, err := out.Write(text); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}
