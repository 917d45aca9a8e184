package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/gardener-extensions/registry-cache/bench"
	"github.com/gardener-extensions/registry-cache/bench/controlplane"
	"github.com/gardener-extensions/registry-cache/internal/program"
	"github.com/gardener-extensions/registry-cache/kind/command"
	"github.com/gardener-extensions/registry-cache/kind/nodeimage"
	"github.com/gardener-extensions/registry-cache/kind/progress"
)

const (
	// minShoots leaves one shoot intact, because the measurement breaks two shoots.
	minShoots = 3
	// webhookRequests is the number of reviews sent to the webhook, 50 a second.
	webhookRequests, webhookRequestsQuick = 1000, 500

	extensionPackage = "./cmd/registry-cache-extension"
)

func main() { os.Exit(program.Main(newCommand)) }

type options struct {
	shoots       []int
	quick        bool
	json, strict bool
	workers      int
	period       time.Duration
	extension    string
	folder       string
	previous     []string
}

func newCommand(streams program.Streams) *cobra.Command {
	o := options{}
	cmd := &cobra.Command{
		Use:   "bench-controller",
		Short: "Measure the cost of the extension on a seed with many shoots",
		Args:  program.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.complete(); err != nil {
				return program.Usage(err)
			}
			return o.run(cmd.Context(), streams)
		},
	}
	flags := cmd.Flags()
	flags.IntSliceVarP(&o.shoots, "shoots", "n", []int{10, 100, 1000, 3000}, "numbers of shoots, each measured separately")
	flags.BoolVar(&o.quick, "quick", false, "measure 10 and 100 shoots, with fewer requests to the webhook")
	flags.BoolVar(&o.json, "json", false, "print JSON instead of Markdown")
	flags.StringSliceVar(&o.previous, "previous", nil, "files with the JSON output of earlier calls; their results come first in the report")
	flags.BoolVar(&o.strict, "strict", false, "exit with 1 if a goal is missed")
	flags.IntVar(&o.workers, "workers", 0, "workers of the controller (default: those of the chart)")
	flags.DurationVar(&o.period, "health-check-period", 0, "period of the health checks, whose requests come at any time; 0s for none")
	flags.StringVar(&o.extension, "extension", "", "path of the binary of the extension (default: build "+extensionPackage+")")
	flags.StringVar(&o.folder, "folder", filepath.Join("_artifacts", "bench-controller"), "folder for logs")
	return cmd
}

func (o *options) complete() error {
	if o.quick {
		o.shoots = []int{10, 100}
	}
	for _, n := range o.shoots {
		if n < minShoots {
			return fmt.Errorf("--shoots: %d is less than %d, because the measurement breaks two shoots", n, minShoots)
		}
	}
	folder, err := filepath.Abs(o.folder)
	if err != nil {
		return fmt.Errorf("--folder: %w", err)
	}
	o.folder = folder
	return nil
}

func (o *options) run(ctx context.Context, streams program.Streams) error {
	log.SetLogger(logr.FromSlogHandler(slog.NewTextHandler(io.Discard, nil))) // otherwise controller-runtime warns
	recorder := progress.New(streams.Err)
	if err := os.MkdirAll(o.folder, 0o755); err != nil {
		return program.Environment(fmt.Errorf("create the folder for logs: %w", err))
	}
	result, err := o.measure(ctx, recorder)
	if err != nil {
		return err
	}
	if err := o.print(result, streams.Out); err != nil {
		return err
	}
	for _, goal := range result.Goals {
		if o.strict && goal.Judged && !goal.Met {
			return fmt.Errorf("missed goal: %s", goal.Name)
		}
	}
	return nil
}

func (o *options) measure(ctx context.Context, recorder *progress.Recorder) (bench.Report, error) {
	machine, err := bench.ReadMachine()
	if err != nil {
		return bench.Report{}, program.Environment(err)
	}
	runs, err := readRuns(o.previous)
	if err != nil {
		return bench.Report{}, program.Usage(fmt.Errorf("--previous: %w", err))
	}
	result := bench.Report{Machine: machine, Runs: runs}
	settings, err := o.prepare(ctx, recorder)
	if err != nil {
		return result, program.Environment(err)
	}
	for _, shoots := range o.shoots {
		run, err := bench.Measure(ctx, settings, shoots)
		if err != nil {
			return result, fmt.Errorf("%w (logs: %s)", err, o.folder)
		}
		result.Runs = append(result.Runs, run)
	}
	result.Goals = bench.Judge(result.Runs)
	return result, nil
}

func readRuns(files []string) ([]bench.Run, error) {
	var runs []bench.Run
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var earlier bench.Report
		if err := json.Unmarshal(content, &earlier); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if len(earlier.Runs) == 0 {
			return nil, fmt.Errorf("%s has no runs", file)
		}
		runs = append(runs, earlier.Runs...)
	}
	return runs, nil
}

func (o *options) prepare(ctx context.Context, recorder *progress.Recorder) (bench.Options, error) {
	settings := bench.Options{Extension: o.extension, Folder: o.folder, WebhookRequests: webhookRequests, Workers: o.workers,
		HealthCheckPeriod: o.period, Progress: recorder}
	if o.quick {
		settings.WebhookRequests = webhookRequestsQuick
	}
	err := recorder.Step(ctx, "programs", func(ctx context.Context) error {
		const apiServer, etcd = "kube-apiserver", "etcd"
		built, err := nodeimage.Programs(ctx, nodeimage.Options{Progress: recorder}, apiServer, etcd)
		if err != nil {
			return err
		}
		settings.Programs = controlplane.Programs{KubeAPIServer: built[apiServer], Etcd: built[etcd]}
		if settings.Extension != "" {
			return nil
		}
		settings.Extension = filepath.Join(o.folder, "registry-cache-extension")
		_, err = command.Output(ctx, "go", "build", "-o", settings.Extension, extensionPackage)
		return err
	})
	return settings, err
}

func (o *options) print(result bench.Report, out io.Writer) error {
	text := []byte(result.Markdown())
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
