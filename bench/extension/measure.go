// Package extension measures the cost of the extension on a seed with many shoots: time, API
// requests, CPU and memory of its real binary, with a real kube-apiserver and etcd. A slow result
// is not an error. The report shows which goals of docs/operations.md are held.
//
// The seed contains what gardenlet writes for N shoots with the extension: namespaces, Clusters,
// kubeconfigs, Extensions and OperatingSystemConfigs, each about as large as in production. A
// stand-in replaces the gardener-resource-managers of the shoots. All shoots have the same API
// server and cache the same upstreams, so they also share the Services.
//
// The package must treat the extension as a black box: it measures requests, seconds and bytes.
package extension

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/gardener/gardener/pkg/client/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/bench"
	"github.com/gardener-extensions/registry-cache/kind/progress"
)

const shootUser = "bench:extension" // the user name of the extension in the shoots

// Options configure a measurement.
type Options struct {
	Programs  map[string]string // paths of kube-apiserver and etcd, by name
	Extension string            // path of the binary
	Name      string            // of the binary in the report; not needed if there is only one
	Folder    string            // for the logs: each run has a subfolder, named after the binary and the number of shoots
	Progress  *progress.Recorder
	// HealthCheckPeriod is the period of the health checks, whose requests come at any time. 0 turns
	// them off.
	HealthCheckPeriod time.Duration
}

// Measure measures the extension on a new seed. At least three shoots are needed, because two of
// them are broken at the end. All processes are stopped at the end, even if ctx is canceled.
func Measure(ctx context.Context, o Options, shoots int) (result Run, err error) {
	r := &measurement{
		Options: o, folder: filepath.Join(o.Folder, o.Name, fmt.Sprint(shoots)),
		result: Run{Binary: o.Name, Shoots: shoots, Forbidden: bench.Requests{}},
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer func() {
		cancel(nil)
		for _, stop := range slices.Backward(r.stop) {
			err = errors.Join(err, stop())
		}
	}()
	for _, step := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"API servers", r.startControlPlanes},
		{"shoots", func(ctx context.Context) error { return r.populate(ctx, cancel) }},
		{"extension", r.startExtension},
		{"Extensions from zero", func(ctx context.Context) error {
			return r.pass(ctx, &r.result.First, namespaces(0, shoots), r.createExtensions)
		}},
		{"Extensions without a change", func(ctx context.Context) error {
			return r.pass(ctx, &r.result.NoOp, namespaces(0, shoots), func(ctx context.Context) error { return r.reconcile(ctx, shoots) })
		}},
		{"webhook", func(ctx context.Context) error { return r.webhook(ctx, &r.result.Webhook) }},
		{"Extensions with two shoots broken", r.breakTwo},
		{"webhook with two shoots broken", func(ctx context.Context) error { return r.webhook(ctx, &r.result.WebhookBroken) }},
	} {
		err := o.Progress.Step(ctx, fmt.Sprintf("%s: %s", r.result.name(), step.name), step.do)
		if err != nil {
			return r.result, fmt.Errorf("%s with %d shoots: %w", step.name, shoots, errors.Join(err, context.Cause(ctx)))
		}
	}
	usage, err := r.process.Usage()
	r.result.Peak = usage.Peak
	return r.result, err
}

type measurement struct {
	Options
	folder string
	result Run
	// stop contains functions that stop what was started. Measure calls them in reverse order.
	stop []func() error

	seed, shoot *bench.ControlPlane
	seedClient  client.Client
	arguments   []string      // of the extension
	kubeconfig  []byte        // of the shoots
	extensions  client.Reader // reads from an informer
	process     *bench.Process
}

func (r *measurement) startControlPlanes(context.Context) error {
	for _, server := range []struct {
		name, audited string
		is            **bench.ControlPlane
	}{{"seed", User, &r.seed}, {"shoot", shootUser, &r.shoot}} {
		started, err := bench.StartControlPlane(r.Programs, filepath.Join(r.folder, server.name), server.audited)
		if err != nil {
			return fmt.Errorf("%s: %w", server.name, err)
		}
		*server.is, r.stop = started, append(r.stop, started.Stop)
	}
	return nil
}

// populate creates the shoots on the seed, without Extensions.
func (r *measurement) populate(ctx context.Context, fail func(error)) (err error) {
	r.seedClient, err = client.New(r.seed.Admin(), client.Options{Scheme: kubernetes.SeedScheme})
	if err != nil {
		return fmt.Errorf("create a client for the seed: %w", err)
	}
	if r.arguments, err = Prepare(ctx, r.seedClient); err != nil {
		return err
	}
	if r.kubeconfig, err = r.shoot.Kubeconfig(shootUser, "system:masters"); err != nil {
		return err
	}
	if err := r.createShoots(ctx); err != nil {
		return err
	}
	r.extensions, err = startResourceManager(ctx, r.seed.Admin(), r.shoot.Admin(), fail)
	return err
}

func (r *measurement) startExtension(ctx context.Context) error {
	kubeconfig, err := r.seed.Kubeconfig(User, Groups...)
	if err != nil {
		return err
	}
	r.process, err = Start(ctx, r.Extension, r.folder, kubeconfig, append(r.arguments, "--health-check-period="+r.HealthCheckPeriod.String()))
	if err != nil {
		return err
	}
	r.stop = append(r.stop, r.process.Stop)
	usage, err := r.awaitIdle(ctx)
	r.result.Idle = usage.Resident
	return err
}
