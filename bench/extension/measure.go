// Package extension measures the cost of the extension on a seed with many shoots: time, API
// requests, CPU and memory of its real binary, with a real kube-apiserver and etcd. A slow result
// is not an error. The report shows which goals of docs/operations.md are held.
//
// The seed has what gardenlet writes for N shoots with the extension: namespaces, Clusters,
// kubeconfigs, Extensions and OperatingSystemConfigs, each about as large as in production. A
// stand-in replaces the gardener-resource-managers of the shoots. All shoots have the same API
// server and cache the same upstreams, so they also share the Services.
//
// The package must treat the extension as a black box: it measures requests, seconds and bytes.
package extension

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/bench"
	"github.com/gardener-extensions/registry-cache/kind/progress"
)

const shootUser = "bench:extension" // the user name of the extension in the shoots

// Options configure a measurement.
type Options struct {
	Programs        map[string]string
	Extension       string // path of the binary
	Folder          string // for the logs: each run has a subfolder, named after its number of shoots
	WebhookRequests int    // reviews in each of the two webhook steps
	Workers         int    // of the controller; 0 is the chart's number
	// HealthCheckPeriod is that of the extension. The requests of health checks come at any time, and
	// count as those of the operations. With 0 there are none.
	HealthCheckPeriod time.Duration
	Progress          *progress.Recorder
}

// Measure measures the extension on a new seed. At least three shoots are needed, because two of
// them are broken at the end. All processes are stopped at the end, even if ctx is canceled.
func Measure(ctx context.Context, o Options, shoots int) (result Run, err error) {
	r := &measurement{Options: o, shoots: shoots, result: Run{Shoots: shoots, Forbidden: map[string]int{}}}
	ctx, cancel := context.WithCancelCause(ctx)
	defer func() {
		cancel(nil)
		for i := len(r.stop) - 1; i >= 0; i-- {
			err = errors.Join(err, r.stop[i]())
		}
	}()
	if r.result.LoadBefore, err = bench.LoadAverage(); err != nil {
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
		{"Extensions with two shoots broken", r.breakTwo},
		{"webhook with two shoots broken", func(ctx context.Context) error { return r.webhook(ctx, &r.result.WebhookBroken) }},
		{"memory at the end", r.finish},
	} {
		err := o.Progress.Step(ctx, fmt.Sprintf("%d: %s", shoots, step.name), step.do)
		if err != nil {
			return r.result, fmt.Errorf("%s with %d shoots: %w", step.name, shoots, errors.Join(err, context.Cause(ctx)))
		}
	}
	r.result.LoadAfter, err = bench.LoadAverage()
	return r.result, err
}

type measurement struct {
	Options
	shoots int
	folder string
	result Run
	// stop contains functions that stop what was started. Measure calls them in reverse order.
	stop []func() error

	seed, shoot *bench.ControlPlane
	seedClient  client.Client
	arguments   []string // of the extension
	landscape   *Landscape
	watch       *Watch
	process     *bench.Process
	usage       bench.Usage // of the extension, as last read by awaitIdle or finish
}

func (r *measurement) startControlPlanes(context.Context) error {
	r.folder = filepath.Join(r.Folder, fmt.Sprint(r.shoots))
	var err error
	if r.seed, err = r.startControlPlane("seed", User); err != nil {
		return err
	}
	r.shoot, err = r.startControlPlane("shoot", shootUser)
	return err
}

func (r *measurement) startControlPlane(name, audited string) (*bench.ControlPlane, error) {
	folder := filepath.Join(r.folder, name)
	if err := errors.Join(os.RemoveAll(folder), os.MkdirAll(folder, 0o755)); err != nil {
		return nil, fmt.Errorf("creating the folder of the %s: %w", name, err)
	}
	server, err := bench.StartControlPlane(r.Programs, folder, audited)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	r.stop = append(r.stop, server.Stop)
	return server, nil
}

// populate creates the shoots on the seed, without Extensions.
func (r *measurement) populate(ctx context.Context, fail func(error)) (err error) {
	r.seedClient, err = client.New(r.seed.Admin(), client.Options{Scheme: kubernetes.SeedScheme})
	if err != nil {
		return fmt.Errorf("creating a client for the seed: %w", err)
	}
	if r.arguments, err = Prepare(ctx, r.seedClient); err != nil {
		return err
	}
	kubeconfig, err := r.shoot.Kubeconfig(shootUser, "system:masters")
	if err != nil {
		return err
	}
	r.landscape = newLandscape(r.seedClient, r.shoots, kubeconfig)
	if err := r.landscape.CreateShoots(ctx); err != nil {
		return err
	}
	r.watch, err = StartWatch(ctx, r.seed.Admin(), r.shoot.Admin(), func(err error) {
		if err != nil {
			fail(fmt.Errorf("the stand-in for gardener-resource-manager ended: %w", err))
		}
	})
	return err
}

func (r *measurement) startExtension(ctx context.Context) error {
	kubeconfig, err := r.seed.Kubeconfig(User,
		"system:serviceaccounts", "system:serviceaccounts:"+Namespace)
	if err != nil {
		return err
	}
	if r.Workers > 0 {
		r.arguments = append(r.arguments, fmt.Sprintf("--max-concurrent-reconciles=%d", r.Workers))
	}
	r.process, err = Start(ctx, ProcessOptions{
		Program:    r.Extension,
		Arguments:  append(slices.Clone(r.arguments), "--health-check-period="+r.HealthCheckPeriod.String()),
		Kubeconfig: kubeconfig,
		Namespace:  Namespace,
		Folder:     r.folder,
	})
	if err != nil {
		return err
	}
	r.stop = append(r.stop, r.process.Stop)
	err = r.awaitIdle(ctx)
	r.result.Memory.Idle = r.usage.Resident
	return err
}

// finish reads the memory usage while the extension retries the two broken shoots.
func (r *measurement) finish(ctx context.Context) (err error) {
	if r.usage, err = r.process.Usage(); err != nil {
		return err
	}
	r.result.Memory.Peak, r.result.Memory.Steady = r.usage.Peak, r.usage.Resident
	progress.Note(ctx, "%d MiB, at most %d MiB", r.usage.Resident>>20, r.usage.Peak>>20)
	return nil
}

const webhookInterval = 20 * time.Millisecond // 50 reviews a second

// webhook sends reviews directly to the webhook of the extension, each for the
// OperatingSystemConfig of the next shoot, and measures the latency.
func (r *measurement) webhook(ctx context.Context, latency *Latency) error {
	to, err := Webhook(ctx, r.seedClient, "gardener-extension-"+Name)
	if err != nil {
		return err
	}
	before, err := r.process.Usage()
	if err != nil {
		return err
	}
	answers, err := Send(ctx, to, webhookInterval, r.WebhookRequests, func(i int) (*admissionv1.AdmissionReview, error) {
		return review(i, i%r.shoots)
	})
	if err != nil {
		return err
	}
	after, err := r.process.Usage()
	if err != nil {
		return err
	}
	*latency = newLatency(answers.Latencies, answers.Failed)
	latency.CPU = (after.CPU - before.CPU).Seconds() / float64(r.WebhookRequests)
	progress.Note(ctx, "p50 %.1f ms, p99 %.1f ms, CPU %.1f ms", 1000*latency.P50, 1000*latency.P99, 1000*latency.CPU)
	if answers.Failed > 0 {
		progress.Note(ctx, "%d failed: %v", answers.Failed, answers.Failure)
	}
	return nil
}

// review returns the i-th review, as an API server sends it for a new OperatingSystemConfig of the
// shoot.
func review(i, shoot int) (*admissionv1.AdmissionReview, error) {
	config, err := operatingSystemConfig(shoot)
	if err != nil {
		return nil, err
	}
	version := extensionsv1alpha1.SchemeGroupVersion
	config.TypeMeta = metav1.TypeMeta{APIVersion: version.String(), Kind: extensionsv1alpha1.OperatingSystemConfigResource}
	raw, err := json.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("encoding the OperatingSystemConfig of shoot %d: %w", shoot, err)
	}
	kind := metav1.GroupVersionKind{Group: version.Group, Version: version.Version, Kind: config.Kind}
	resource := metav1.GroupVersionResource{Group: version.Group, Version: version.Version, Resource: "operatingsystemconfigs"}
	return &admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID: UID(i), Kind: kind, Resource: resource, RequestKind: &kind, RequestResource: &resource,
			Namespace: config.Namespace, Name: config.Name, Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: raw},
		},
	}, nil
}
