// Package bringup checks the machine, and creates and removes a testbed: the Docker Engine, the
// images, both clusters, the upstreams, Gardener's parts, the extension and the first Shoot.
//
// Up and Down are idempotent: after an interruption Up continues, and Down removes what exists.
// Code that uses a running testbed is in other packages.
package bringup

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apiserver/pkg/authentication/serviceaccount"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/certificate"
	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/kind/command"
	"github.com/gardener-extensions/registry-cache/kind/engine"
	"github.com/gardener-extensions/registry-cache/kind/nodeimage"
	"github.com/gardener-extensions/registry-cache/kind/progress"
	"github.com/gardener-extensions/registry-cache/kind/upstream"
)

// UpTimeout bounds Up. It is long enough for a small machine that has to compile every binary.
const UpTimeout = 45 * time.Minute

// Up creates or updates the testbed: the engine, the node image, both clusters, the upstream
// registries, Gardener's parts, the extension, and the Shoot of the configuration's manifest or, by
// default, one with the extension. It is idempotent: it keeps what is healthy, rebuilds what is
// broken, replaces what is outdated, and applies a changed configuration in place if possible.
// After an error, or if ctx is canceled, another Up continues, and Down removes what was created.
//
// Up replaces a testbed of another checkout. If the machine lacks something, the error is an
// *engine.Missing, a *Failures, an *UnavailableError or, for a full disk, a *Full.
func Up(ctx context.Context, t *kind.Testbed) error {
	if err := t.ConfigurationError(); err != nil {
		return err
	}
	unlock, err := t.Lock()
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := command.EndMarked(ctx, t.Prefix); err != nil { // of a killed command
		return err
	}
	if err := command.MarkChildren(t.Prefix); err != nil {
		return fmt.Errorf("mark the child processes: %w", err)
	}
	if t.Log, err = t.State.OpenLog(); err != nil {
		return err
	}
	ctx, cancel := progress.Within(ctx, UpTimeout, "the testbed was not up")
	defer cancel()

	if err := prepareEngine(ctx, t); err != nil {
		return err
	}
	return runUntilDiskFull(ctx, writtenFolders(t.Engine, t.State), func(ctx context.Context) error {
		return inOrder(ctx, t,
			step("node image", ensureNodeImage),
			step("images of the extension and of Gardener", buildImages),
			startClusters,
			installGardener,
			step("shoot reconciled", reconcileShoot),
			awaitExtension,
			removeOtherUpstreams,
		)
	})
}

func prepareEngine(ctx context.Context, t *kind.Testbed) error {
	return inOrder(ctx, t,
		step("preflight", checkMachine),
		step("docker engine", func(ctx context.Context, t *kind.Testbed) (err error) {
			t.Engine, err = engine.Ensure(ctx)
			return explainFullDisk(err, defaultDataRoot)
		}),
	)
}

func ensureNodeImage(ctx context.Context, t *kind.Testbed) (err error) {
	if t.NodeImage, t.ShootImage = t.Config.NodeImage, t.Config.NodeImage; t.NodeImage != "" { // kind pulls it
		return nil
	}
	options := nodeimage.Options{Repository: t.Root, Progress: t.Recorder}
	if t.NodeImage, err = nodeimage.Ensure(ctx, options); err != nil {
		return err
	}
	options.Kubernetes, options.Containerd = t.Config.Shoot.KubernetesVersion, t.Config.Shoot.Containerd.Version
	t.ShootImage = t.NodeImage
	if options.Kubernetes != "" || options.Containerd != "" {
		t.ShootImage, err = nodeimage.Ensure(ctx, options)
	}
	return err
}

func startClusters(ctx context.Context, t *kind.Testbed) (err error) {
	if t.CA, err = certificate.Ensure(t.State.Certificates()); err != nil {
		return err
	}
	if err := cluster.EnsureNetwork(ctx); err != nil {
		return err
	}
	if err := checkAvailable(ctx, t); err != nil {
		return err
	}
	if err := t.StoreConfiguration(); err != nil {
		return err
	}
	return progress.ForEach(ctx, []part{
		func(ctx context.Context, t *kind.Testbed) error {
			return inOrder(ctx, t, step("seed cluster", startSeed), step("images on the seed", loadSeed), step("gardener in the seed", installSeed),
				inGarden(t, "gardener's control plane", deployGarden))
		},
		func(ctx context.Context, t *kind.Testbed) error {
			return inOrder(ctx, t, step("shoot cluster", startShoot), step("images on the shoot", loadShoot))
		},
		step("upstream registries", startUpstreams),
	}, func(ctx context.Context, part part) error { return part(ctx, t) })
}

func startSeed(ctx context.Context, t *kind.Testbed) (err error) {
	config := clusterConfig(t, t.SeedName(), 0, t.State.SeedKubeconfig())
	// Only the seed is audited: in the shoot, extensions are cluster-admin, as in Gardener.
	for _, namespace := range append([]string{t.Extension.Namespace()}, t.Extension.Accounts...) {
		config.Audited = append(config.Audited, serviceaccount.MakeNamespaceGroupName(namespace))
	}
	t.Seed, err = cluster.Ensure(ctx, config)
	return err
}

func startShoot(ctx context.Context, t *kind.Testbed) (err error) {
	t.Shoot, err = cluster.Ensure(ctx, shootConfig(t))
	return err
}

func clusterConfig(t *kind.Testbed, name string, workers int, kubeconfig string) cluster.Config {
	content := ""
	if t.Config.Extension != nil { // the default extension adds no content, which keeps the fingerprint of existing clusters
		content = t.Extension.Name
	}
	if t.Config.Garden && name == t.SeedName() {
		content += " with a garden"
	}
	return cluster.Config{
		Content: content, Name: name, Workers: workers, Kubeconfig: kubeconfig, Engine: t.Engine, CA: t.CA.PEM(),
		Image: t.NodeImage, StockImage: t.Config.NodeImage != "", Agent: t.Images[kind.ImageNodeExecAgent].Executable,
	}
}

func startUpstreams(ctx context.Context, t *kind.Testbed) error {
	var options []upstream.Options
	for _, host := range upstreamHosts(t) {
		options = append(options, t.UpstreamOptions(host))
	}
	started, err := upstream.StartAll(ctx, options...)
	if err != nil {
		return err
	}
	t.Upstreams.Set(started)
	for _, registry := range started {
		progress.Note(ctx, "%s", registry.Host())
	}
	return nil
}

func awaitExtension(ctx context.Context, t *kind.Testbed) error {
	if t.Extension.Await.Until == nil {
		return nil
	}
	return step(t.Extension.Await.Name, t.Extension.Await.Until)(ctx, t)
}

type part = func(context.Context, *kind.Testbed) error

// inGarden returns a step that the testbed has only with a garden.
func inGarden(t *kind.Testbed, name string, run part) part {
	if t.Config.Garden {
		return step(name, run)
	}
	return func(context.Context, *kind.Testbed) error { return nil }
}

func step(name string, run part) part {
	return func(ctx context.Context, t *kind.Testbed) error {
		return t.Recorder.Step(ctx, name, func(ctx context.Context) error { return run(ctx, t) })
	}
}

func inOrder[T any](ctx context.Context, target T, parts ...func(context.Context, T) error) error {
	for _, part := range parts {
		if err := part(ctx, target); err != nil {
			return err
		}
	}
	return nil
}
