package bringup

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apiserver/pkg/authentication/serviceaccount"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/certificate"
	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/kind/debian"
	"github.com/gardener-extensions/registry-cache/kind/engine"
	"github.com/gardener-extensions/registry-cache/kind/nodeimage"
	"github.com/gardener-extensions/registry-cache/kind/process"
	"github.com/gardener-extensions/registry-cache/kind/progress"
	"github.com/gardener-extensions/registry-cache/kind/upstream"
)

// upTimeout bounds Up from nothing, with every binary to be compiled on a small machine.
const UpTimeout = 45 * time.Minute

// Up brings the testbed up as its Configuration says: the engine, the node image, both clusters, the upstream registries, the
// Gardener parts, the extension, and the shoot, reconciled with a cache for each of CachedUpstreams, or as the manifest of the
// configuration says. It is idempotent: what is there and healthy is kept, what is dead is rebuilt, what is outdated is replaced, and
// what another configuration asks for is changed in what runs where that is possible, see configuration.Diff.
//
// A testbed that another directory has left is replaced; one that runs there is a *OtherCheckoutError, see Options.Replace.
//
// A machine that lacks something gives an *engine.Missing, a *preflight.Failures or an *Unavailable, a disk without room a
// *preflight.Full. After any failure, and after cancellation of ctx, a second Up goes on and Down removes what there is.
func Up(ctx context.Context, t *kind.Testbed) error {
	if err := t.ConfigurationError(); err != nil {
		return err
	}
	unlock, err := t.Lock()
	if err != nil {
		return err
	}
	defer unlock()
	if err := process.Mark(t.Prefix); err != nil {
		return fmt.Errorf("mark the processes of the testbed: %w", err)
	}
	if t.Log, err = t.State.OpenLog(); err != nil {
		return err
	}
	ctx, cancel := progress.Within(ctx, UpTimeout, "the testbed was not up")
	defer cancel()

	return progress.InOrder(ctx, func(ctx context.Context) error { return prepareEngine(ctx, t) }, func(ctx context.Context) error { return claim(ctx, t) }, withRoom(t, func(ctx context.Context) error { return prepareImages(ctx, t) }, func(ctx context.Context) error { return replaceOthers(ctx, t) }, func(ctx context.Context) error { return startClusters(ctx, t) }, func(ctx context.Context) error { return installGardener(ctx, t) },
		func(ctx context.Context) error { return reconcileShoot(ctx, t) }, func(ctx context.Context) error { return awaitMirrors(ctx, t) }, func(ctx context.Context) error { return dropUpstreams(ctx, t) }, func(ctx context.Context) error { return recordConfiguration(ctx, t) }, t.ForgetPlanted))
}

// prepareEngine gives the testbed an engine.
func prepareEngine(ctx context.Context, t *kind.Testbed) error {
	return progress.InOrder(ctx,
		func(context.Context) error { return debian.AllowServiceStart() },
		t.Step("preflight", func(ctx context.Context) error { return checkMachine(ctx, t) }),
		t.Step("docker engine", func(ctx context.Context) (err error) {
			if t.Engine, err = engine.Ensure(ctx); err != nil {
				return explained(err, disks{directories: []string{defaultDataRoot}})
			}
			return checkDisk(ctx, t)
		}),
	)
}

// prepareImages gives the testbed the node image and the images of our binaries.
func prepareImages(ctx context.Context, t *kind.Testbed) error {
	return progress.InOrder(ctx,
		t.Step("node image", func(ctx context.Context) (err error) {
			t.NodeImage, err = nodeimage.Ensure(ctx, nodeimage.Options{Override: t.Override, Repository: t.Root, Progress: t.Recorder})
			return err
		}),
		t.Step("images of the extension and of Gardener", func(ctx context.Context) (err error) {
			t.Images, err = buildImages(ctx, t)
			return err
		}),
	)
}

// startClusters creates both clusters and the upstream registries at once.
func startClusters(ctx context.Context, t *kind.Testbed) (err error) {
	if t.CA, err = certificate.Ensure(t.State.Certificates()); err != nil {
		return err
	}
	release, err := cluster.HoldNetwork(ctx) // until each part has its first container
	if err != nil {
		return err
	}
	defer release()
	if err := checkAvailable(ctx, t); err != nil {
		return err
	}
	if err := rememberConfiguration(t); err != nil {
		return err
	}
	return progress.AtOnce(ctx,
		t.Step("seed cluster", func(ctx context.Context) (err error) {
			config := clusterConfig(t, t.SeedName(), 0, t.State.SeedKubeconfig())
			// In the shoot extensions are cluster-admin, as in Gardener: only in the seed can a request be forbidden.
			config.Audited = []string{
				serviceaccount.MakeNamespaceGroupName(kind.ExtensionNamespace), serviceaccount.MakeNamespaceGroupName(kind.AdmissionNamespace),
			}
			t.Seed, err = cluster.Ensure(ctx, config)
			return err
		}),
		t.Step("shoot cluster", func(ctx context.Context) (err error) {
			t.Shoot, err = cluster.Ensure(ctx, shootConfig(t))
			return err
		}),
		t.Step("upstream registries", func(ctx context.Context) error { return startUpstreams(ctx, t) }),
	)
}

func clusterConfig(t *kind.Testbed, name string, workers int, kubeconfig string) cluster.Config {
	return cluster.Config{
		Name:       name,
		Image:      t.NodeImage,
		StockImage: t.Override != "",
		Workers:    workers,
		Kubeconfig: kubeconfig,
		Engine:     t.Engine,
		CA:         t.CA.PEM(),
	}
}

// startUpstreams starts one registry for each upstream of the configuration.
func startUpstreams(ctx context.Context, t *kind.Testbed) error {
	options := []upstream.Options{}
	for _, host := range t.ConfiguredHosts() {
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
