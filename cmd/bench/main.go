// Command bench runs benchmarks. `bench controller` measures what the extension costs on a seed
// with 10 to 3,000 shoots, see docs/operations.md. `bench cache` compares the cache with a stock
// distribution, nginx and downloads without a cache, see docs/benchmarks.md.
//
// A missed goal is not an error, because a busy machine gives bad numbers.
package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/gardener-extensions/registry-cache/bench"
	"github.com/gardener-extensions/registry-cache/bench/cache"
	"github.com/gardener-extensions/registry-cache/bench/extension"
	"github.com/gardener-extensions/registry-cache/internal/program"
	"github.com/gardener-extensions/registry-cache/kind/command"
	"github.com/gardener-extensions/registry-cache/kind/nodeimage"
	"github.com/gardener-extensions/registry-cache/kind/progress"
)

const extensionPackage = "./cmd/registry-cache-extension"

func main() { os.Exit(program.Main(newCommand)) }

func newCommand(streams program.Streams) *cobra.Command {
	root := &cobra.Command{
		Use: "bench", Short: "Measure the extension, or compare caches", Args: cobra.ArbitraryArgs, RunE: program.Verbs,
	}
	type report interface{ Markdown() string }
	add := func(name, short string, measure func(context.Context) (report, error)) *pflag.FlagSet {
		cmd := &cobra.Command{Use: name, Short: short, Args: program.Args(cobra.NoArgs)}
		cmd.RunE = func(*cobra.Command, []string) error {
			measured, err := measure(cmd.Context())
			if err == nil {
				_, err = fmt.Fprint(streams.Out, measured.Markdown())
			}
			return err
		}
		root.AddCommand(cmd)
		return cmd.Flags()
	}
	recorder := progress.New(streams.Err)
	var shoots []int
	var binaries []string
	var period time.Duration
	flags := add("controller", "Measure the cost of the extension on a seed with many shoots", func(ctx context.Context) (report, error) {
		return measureExtension(ctx, recorder, shoots, binaries, period)
	})
	flags.IntSliceVarP(&shoots, "shoots", "n", []int{10, 100, 1000, 3000}, "numbers of shoots, each measured separately")
	flags.StringSliceVar(&binaries, "extension", nil, "binaries of the extension to compare (default: build "+extensionPackage+")")
	flags.DurationVar(&period, "health-check-period", 0, "period of the health checks, whose requests come at any time; 0s for none")
	var quick bool
	flags = add("cache", "Compare the cache with a stock distribution, nginx and no cache", func(ctx context.Context) (report, error) {
		return measureCaches(ctx, recorder, quick)
	})
	flags.BoolVar(&quick, "quick", false, "measure fewer rows, once, in two minutes instead of 15")
	return root
}

func measureExtension(
	ctx context.Context, recorder *progress.Recorder, shoots []int, binaries []string, period time.Duration,
) (report extension.Report, err error) {
	log.SetLogger(logr.FromSlogHandler(slog.NewTextHandler(io.Discard, nil))) // otherwise controller-runtime warns
	for _, n := range shoots {
		if n < 3 {
			return report, program.Usage(fmt.Errorf("--shoots: %d is less than 3, because the measurement breaks two shoots", n))
		}
	}
	if report.Machine, err = bench.Machine(); err != nil {
		return report, program.Environment(err)
	}
	o := extension.Options{Progress: recorder, HealthCheckPeriod: period}
	err = prepare(ctx, recorder, "bench-controller", func(ctx context.Context, folder string) (err error) {
		o.Folder = folder
		o.Programs, err = nodeimage.Programs(ctx, nodeimage.Options{Progress: recorder}, bench.APIServer, bench.Etcd)
		if err == nil && len(binaries) == 0 {
			binaries = []string{filepath.Join(folder, "registry-cache-extension")}
			_, err = command.Output(ctx, "go", "build", "-o", binaries[0], extensionPackage)
		}
		return err
	})
	if err != nil {
		return report, program.Environment(err)
	}
	for _, n := range shoots {
		for _, o.Extension = range binaries {
			if len(binaries) > 1 {
				o.Name = filepath.Base(o.Extension)
			}
			run, err := extension.Measure(ctx, o, n)
			if err != nil {
				return report, fmt.Errorf("%w (logs: %s)", err, o.Folder)
			}
			report.Runs = append(report.Runs, run)
		}
	}
	return report, nil
}

func measureCaches(ctx context.Context, recorder *progress.Recorder, quick bool) (report cache.Report, err error) {
	o := cache.Options{Progress: recorder, Quick: quick}
	err = prepare(ctx, recorder, "bench-cache", func(ctx context.Context, folder string) (err error) {
		o.Folder = folder
		o.Programs, o.Versions, err = cache.Prepare(ctx, folder)
		return err
	})
	if err != nil {
		return report, program.Environment(err)
	}
	if report, err = cache.Measure(ctx, o); err != nil {
		return report, fmt.Errorf("%w (logs: %s)", err, o.Folder)
	}
	return report, nil
}

// prepare builds programs in a folder that is also for volumes and logs.
func prepare(ctx context.Context, recorder *progress.Recorder, name string, build func(ctx context.Context, folder string) error) error {
	folder, err := filepath.Abs(filepath.Join("_artifacts", name))
	if err == nil {
		err = os.MkdirAll(folder, 0o755)
	}
	if err != nil {
		return fmt.Errorf("create the folder for logs: %w", err)
	}
	return recorder.Step(ctx, "programs", func(ctx context.Context) error { return build(ctx, folder) })
}
