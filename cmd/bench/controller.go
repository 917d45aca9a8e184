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
	"github.com/gardener-extensions/registry-cache/bench/extension"
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

type controllerOptions struct {
	output
	shoots    []int
	quick     bool
	workers   int
	period    time.Duration
	extension string
	previous  []string
}

func newControllerCommand(streams program.Streams) *cobra.Command {
	o := controllerOptions{}
	cmd := &cobra.Command{
		Use:   "controller",
		Short: "Measure the cost of the extension on a seed with many shoots",
		Args:  program.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.run(cmd.Context(), streams)
		},
	}
	o.addFlags(cmd)
	flags := cmd.Flags()
	flags.IntSliceVarP(&o.shoots, "shoots", "n", []int{10, 100, 1000, 3000}, "numbers of shoots, each measured separately")
	flags.BoolVar(&o.quick, "quick", false, "measure 10 and 100 shoots, with fewer requests to the webhook")
	flags.StringSliceVar(&o.previous, "previous", nil, "files with the JSON output of earlier calls; their results come first in the report")
	flags.IntVar(&o.workers, "workers", 0, "workers of the controller (default: those of the chart)")
	flags.DurationVar(&o.period, "health-check-period", 0, "period of the health checks, whose requests come at any time; 0s for none")
	flags.StringVar(&o.extension, "extension", "", "path of the binary of the extension (default: build "+extensionPackage+")")
	return cmd
}

func (o *controllerOptions) chooseShoots() error {
	if o.quick {
		o.shoots = []int{10, 100}
	}
	for _, n := range o.shoots {
		if n < minShoots {
			return fmt.Errorf("--shoots: %d is less than %d, because the measurement breaks two shoots", n, minShoots)
		}
	}
	return nil
}

func (o *controllerOptions) run(ctx context.Context, streams program.Streams) error {
	log.SetLogger(logr.FromSlogHandler(slog.NewTextHandler(io.Discard, nil))) // otherwise controller-runtime warns
	if err := o.chooseShoots(); err != nil {
		return program.Usage(err)
	}
	if err := o.prepare(); err != nil {
		return err
	}
	result, err := o.measure(ctx, progress.New(streams.Err))
	if err != nil {
		return err
	}
	return o.report(result, result.Goals, streams.Out)
}

func (o *controllerOptions) measure(ctx context.Context, recorder *progress.Recorder) (extension.Report, error) {
	machine, err := bench.ReadMachine()
	if err != nil {
		return extension.Report{}, program.Environment(err)
	}
	runs, err := readRuns(o.previous)
	if err != nil {
		return extension.Report{}, program.Usage(fmt.Errorf("--previous: %w", err))
	}
	result := extension.Report{Machine: machine, Kubernetes: nodeimage.KubernetesVersion, Runs: runs}
	settings, err := o.build(ctx, recorder)
	if err != nil {
		return result, program.Environment(err)
	}
	for _, shoots := range o.shoots {
		run, err := extension.Measure(ctx, settings, shoots)
		if err != nil {
			return result, fmt.Errorf("%w (logs: %s)", err, o.folder)
		}
		result.Runs = append(result.Runs, run)
	}
	result.Goals = extension.Judge(result.Runs)
	return result, nil
}

func readRuns(files []string) ([]extension.Run, error) {
	var runs []extension.Run
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var earlier extension.Report
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

func (o *controllerOptions) build(ctx context.Context, recorder *progress.Recorder) (extension.Options, error) {
	settings := extension.Options{Extension: o.extension, Folder: o.folder, WebhookRequests: webhookRequests, Workers: o.workers,
		HealthCheckPeriod: o.period, Progress: recorder}
	if o.quick {
		settings.WebhookRequests = webhookRequestsQuick
	}
	err := recorder.Step(ctx, "programs", func(ctx context.Context) error {
		var err error
		settings.Programs, err = nodeimage.Programs(ctx, nodeimage.Options{Progress: recorder}, bench.APIServer, bench.Etcd)
		if err != nil || settings.Extension != "" {
			return err
		}
		settings.Extension = filepath.Join(o.folder, "registry-cache-extension")
		_, err = command.Output(ctx, "go", "build", "-o", settings.Extension, extensionPackage)
		return err
	})
	return settings, err
}
