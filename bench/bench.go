package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener/gardener/pkg/client/kubernetes"

	"github.com/gardener-extensions/registry-cache/bench/auditlog"
	"github.com/gardener-extensions/registry-cache/bench/controlplane"
	"github.com/gardener-extensions/registry-cache/bench/extension"
	"github.com/gardener-extensions/registry-cache/bench/landscape"
	"github.com/gardener-extensions/registry-cache/bench/report"
	"github.com/gardener-extensions/registry-cache/kind/progress"
)

// shootUser is who the extension is in the shoots.
const shootUser = "bench:extension"

// Options say what is measured, and with what.
type Options struct {
	// Programs are the API server's.
	Programs controlplane.Programs
	// Extension is the path of the extension's binary.
	Extension string
	// Folder takes the logs of each run, in a folder named like the number of shoots.
	Folder string
	// WebhookRequests is how many reviews are sent to the webhook, each of two times.
	WebhookRequests int
	// Progress shows the steps.
	Progress *progress.Recorder
}

// Run measures the extension on a new seed with so many shoots, at least three: two of them are broken at the end. Everything
// that it started is stopped when it returns, also when the context ends.
func Run(ctx context.Context, o Options, shoots int) (result report.Run, err error) {
	r := &run{Options: o, shoots: shoots, result: report.Run{Shoots: shoots, Forbidden: map[string]int{}}}
	ctx, cancel := context.WithCancelCause(ctx)
	defer func() {
		cancel(nil)
		for i := len(r.stop) - 1; i >= 0; i-- {
			err = errors.Join(err, r.stop[i]())
		}
	}()
	if r.result.LoadBefore, err = loadAverage(); err != nil {
		return r.result, err
	}
	for _, step := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"API servers", r.startControlPlanes},
		{"shoots", func(ctx context.Context) error { return r.populate(ctx, cancel) }},
		{"extension", r.startExtension},
		{"Extensions from zero", r.first},
		{"OperatingSystemConfigs", func(ctx context.Context) error { return r.landscape.CreateOperatingSystemConfigs(ctx) }},
		{"Extensions without a change", r.again},
		{"webhook", func(ctx context.Context) error { return r.webhook(ctx, &r.result.Webhook) }},
		{"Extensions with two shoots broken", r.broken},
		{"webhook with two shoots broken", func(ctx context.Context) error { return r.webhook(ctx, &r.result.WebhookBroken) }},
		{"memory at the end", r.finish},
	} {
		err := o.Progress.Step(ctx, fmt.Sprintf("%d: %s", shoots, step.name), step.do)
		if err != nil {
			return r.result, fmt.Errorf("%s with %d shoots: %w", step.name, shoots, errors.Join(err, context.Cause(ctx)))
		}
	}
	r.result.LoadAfter, err = loadAverage()
	return r.result, err
}

// run is one measurement while it runs.
type run struct {
	Options
	shoots int
	folder string
	result report.Run
	// stop undoes what was started, the last first.
	stop []func() error

	seed, shoot             *controlplane.ControlPlane
	seedEvents, shootEvents *auditlog.Reader
	arguments               []string // of the extension
	landscape               *landscape.Landscape
	watch                   *landscape.Watch
	process                 *extension.Process
	usage                   extension.Usage // at the end of the step before
}

// startControlPlanes starts the seed's API server and the one that stands for all shoots.
func (r *run) startControlPlanes(context.Context) error {
	r.folder = filepath.Join(r.Folder, fmt.Sprint(r.shoots))
	var err error
	if r.seed, r.seedEvents, err = r.startControlPlane("seed", landscape.User); err != nil {
		return err
	}
	r.shoot, r.shootEvents, err = r.startControlPlane("shoot", shootUser)
	return err
}

func (r *run) startControlPlane(name, audited string) (*controlplane.ControlPlane, *auditlog.Reader, error) {
	folder := filepath.Join(r.folder, name)
	if err := errors.Join(os.RemoveAll(folder), os.MkdirAll(folder, 0o755)); err != nil {
		return nil, nil, fmt.Errorf("creating the folder of the %s: %w", name, err)
	}
	server, err := controlplane.Start(r.Programs, folder, audited)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	r.stop = append(r.stop, func() error {
		return errors.Join(server.Stop(), os.Remove(server.AuditLog())) // hundreds of MB, and read by now
	})
	return server, auditlog.NewReader(server.AuditLog()), nil
}

// populate fills the seed with everything but Extensions.
func (r *run) populate(ctx context.Context, fail func(error)) error {
	seed, err := client.New(r.seed.Admin(), client.Options{Scheme: kubernetes.SeedScheme})
	if err != nil {
		return fmt.Errorf("creating a client for the seed: %w", err)
	}
	if r.arguments, err = landscape.Prepare(ctx, seed); err != nil {
		return err
	}
	kubeconfig, err := r.shoot.Kubeconfig(shootUser, "system:masters")
	if err != nil {
		return err
	}
	r.landscape = landscape.New(seed, r.shoots, kubeconfig)
	if err := r.landscape.CreateShoots(ctx); err != nil {
		return err
	}
	r.watch, err = landscape.StartWatch(ctx, r.seed.Admin(), r.shoot.Admin(), func(err error) {
		if err != nil {
			fail(fmt.Errorf("the stand-in for gardener-resource-manager ended: %w", err))
		}
	})
	return err
}

func (r *run) startExtension(ctx context.Context) error {
	kubeconfig, err := r.seed.Kubeconfig(landscape.User, "system:serviceaccounts", "system:serviceaccounts:"+landscape.ExtensionNamespace)
	if err != nil {
		return err
	}
	r.process, err = extension.Start(ctx, extension.Options{
		Program:    r.Extension,
		Arguments:  r.arguments,
		Kubeconfig: kubeconfig,
		Namespace:  landscape.ExtensionNamespace,
		Folder:     r.folder,
	})
	if err != nil {
		return err
	}
	r.stop = append(r.stop, r.process.Stop)
	if err := r.rest(ctx); err != nil {
		return err
	}
	r.result.Memory.Idle = r.usage.Resident
	return nil
}

// finish reads what is left in memory. The extension does not rest: it goes on to try the two broken shoots.
func (r *run) finish(ctx context.Context) (err error) {
	if r.usage, err = r.process.Usage(); err != nil {
		return err
	}
	r.result.Memory.Peak, r.result.Memory.Steady = r.usage.Peak, r.usage.Resident
	progress.Note(ctx, "%d MiB, at most %d MiB", r.usage.Resident>>20, r.usage.Peak>>20)
	return nil
}
