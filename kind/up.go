package kind

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"

	"github.com/gardener-extensions/registry-cache/kind/certificate"
	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/kind/debian"
	"github.com/gardener-extensions/registry-cache/kind/engine"
	"github.com/gardener-extensions/registry-cache/kind/nodeimage"
	"github.com/gardener-extensions/registry-cache/kind/progress"
	"github.com/gardener-extensions/registry-cache/kind/upstream"
)

// upTimeout bounds Up from nothing, with every binary to be compiled on a small machine.
const upTimeout = 45 * time.Minute

// Up brings the testbed up as its Configuration says: the engine, the node image, both clusters, the upstream registries, the
// Gardener parts, the extension, and the shoot, reconciled with a cache for each of CachedUpstreams, or as the manifest of the
// configuration says. It is idempotent: what is there and healthy is kept, what is dead is rebuilt, what is outdated is replaced, and
// what another configuration asks for is changed in what runs where that is possible, see configuration.Diff.
//
// A testbed that another directory has left is replaced; one that runs there is a *ForeignError, see Options.Replace.
//
// A machine that lacks something gives an *engine.Missing, a *preflight.Failures or an *Unavailable, a disk without room a
// *preflight.Full. After any failure, and after cancellation of ctx, a second Up goes on and Down removes what there is.
func (t *Testbed) Up(ctx context.Context) error {
	if err := t.ConfigurationError(); err != nil {
		return err
	}
	unlock, err := t.Lock()
	if err != nil {
		return err
	}
	defer unlock()
	if err := markProcesses(t.prefix); err != nil {
		return fmt.Errorf("mark the processes of the testbed: %w", err)
	}
	if t.log, err = t.state.openLog(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, upTimeout, fmt.Errorf("the testbed was not up after %s", upTimeout))
	defer cancel()

	return inOrder(ctx, t.prepareEngine, t.claim, t.withRoom(t.prepareImages, t.replaceOthers, t.startClusters, t.installGardener,
		t.reconcileShoot, t.awaitMirrors, t.dropUpstreams, t.recordConfiguration, t.forgetPlanted))
}

// inOrder runs the parts one after another, until one fails.
func inOrder(ctx context.Context, parts ...func(context.Context) error) error {
	for _, part := range parts {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return nil
}

// atOnce runs the parts concurrently; the first failure cancels the others.
func atOnce(ctx context.Context, parts ...func(context.Context) error) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, part := range parts {
		group.Go(func() error { return part(ctx) })
	}
	return group.Wait()
}

// step makes a named, recorded step of a part.
func (t *Testbed) step(name string, part func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error { return t.recorder.Step(ctx, name, part) }
}

// prepareEngine gives the testbed an engine.
func (t *Testbed) prepareEngine(ctx context.Context) error {
	return inOrder(ctx,
		func(context.Context) error { return debian.Restore() },
		t.step("preflight", t.preflight),
		t.step("docker engine", func(ctx context.Context) (err error) {
			if t.engine, err = engine.Ensure(ctx); err != nil {
				return explained(err, disks{directories: []string{defaultDataRoot}})
			}
			return t.checkDisk(ctx)
		}),
	)
}

// prepareImages gives the testbed the node image and the images of our binaries.
func (t *Testbed) prepareImages(ctx context.Context) error {
	return inOrder(ctx,
		t.step("node image", func(ctx context.Context) (err error) {
			t.nodeImage, err = nodeimage.Ensure(ctx, nodeimage.Options{Override: t.override, Repository: t.root, Progress: t.recorder})
			return err
		}),
		t.step("images of the extension and of Gardener", func(ctx context.Context) (err error) {
			t.images, err = t.buildImages(ctx)
			return err
		}),
	)
}

// startClusters creates both clusters and the upstream registries at once.
func (t *Testbed) startClusters(ctx context.Context) (err error) {
	if t.ca, err = certificate.Ensure(t.state.certificates()); err != nil {
		return err
	}
	release, err := cluster.HoldNetwork(ctx) // until each part has its first container
	if err != nil {
		return err
	}
	defer release()
	if err := t.checkAvailable(ctx); err != nil {
		return err
	}
	if err := t.rememberConfiguration(); err != nil {
		return err
	}
	return atOnce(ctx,
		t.step("seed cluster", func(ctx context.Context) (err error) {
			config := t.clusterConfig(t.seedName(), 0, t.state.seedKubeconfig())
			// In the shoot extensions are cluster-admin, as in Gardener: only in the seed can a request be forbidden.
			config.Audited = []string{
				serviceaccount.MakeNamespaceGroupName(ExtensionNamespace), serviceaccount.MakeNamespaceGroupName(AdmissionNamespace),
			}
			t.seed, err = cluster.Ensure(ctx, config)
			return err
		}),
		t.step("shoot cluster", func(ctx context.Context) (err error) {
			t.shoot, err = cluster.Ensure(ctx, t.shootConfig())
			return err
		}),
		t.step("upstream registries", t.startUpstreams),
	)
}

func (t *Testbed) clusterConfig(name string, workers int, kubeconfig string) cluster.Config {
	return cluster.Config{
		Name:       name,
		Image:      t.nodeImage,
		StockImage: t.override != "",
		Workers:    workers,
		Kubeconfig: kubeconfig,
		Engine:     t.engine,
		CA:         t.ca.PEM(),
	}
}

// startUpstreams starts one registry for each upstream of the configuration.
func (t *Testbed) startUpstreams(ctx context.Context) error {
	options := []upstream.Options{}
	for _, host := range t.configuredHosts() {
		options = append(options, t.UpstreamOptions(host))
	}
	started, err := upstream.StartAll(ctx, options...)
	if err != nil {
		return err
	}
	t.upstreams.set(started)
	for _, registry := range started {
		progress.Note(ctx, "%s", registry.Host())
	}
	return nil
}
