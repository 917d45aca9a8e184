package cachetest

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/bringup"
	"github.com/gardener-extensions/registry-cache/kind/gardener"
	"github.com/gardener-extensions/registry-cache/kind/image"
	"github.com/gardener-extensions/registry-cache/kind/progress"
)

// Image returns this repository's image for caches. Up configures the extension to use it.
func Image(t *kind.Testbed) image.Built { return t.Images[imageCache] }

// UseImage makes the extension use another image for caches, until the next Up. The shoot's nodes
// must have that image. Running caches change when the Shoot is reconciled.
func UseImage(ctx context.Context, t *kind.Testbed, cache image.Built) error {
	return bringup.Install(ctx, t, t.Extension.Chart, values(t.Images, cache))
}

// InstallStopped installs the extension from an older chart, with current images and no replicas.
// This simulates a seed before an update. UseImage and Up then update to the current chart.
func InstallStopped(ctx context.Context, t *kind.Testbed, chart fs.FS) error {
	values := values(t.Images, Image(t))
	values["replicaCount"] = 0
	delete(values, "controllers") // the older chart may not know the value
	return bringup.Install(ctx, t, chart, values)
}

// StockImage builds distribution's stock image for UseImage, and loads it onto the nodes.
func StockImage(ctx context.Context, t *kind.Testbed) (image.Built, error) {
	built, err := t.Build(ctx, image.Distribution(t.Root))
	if err != nil {
		return image.Built{}, err
	}
	return built[0], image.Load(ctx, t.Shoot.Workers(), built)
}

// InstallAdmission uses the seed as a garden, see gardener.InstallShootDefinition, and installs the
// admission there from its charts. It waits until pods and webhook registration are ready; the API
// server may start to call the webhook a little later. Up never installs or removes the admission.
func InstallAdmission(ctx context.Context, t *kind.Testbed) error {
	garden, err := gardener.NewSeedClient(t.Seed.RESTConfig())
	if err != nil {
		return fmt.Errorf("connect to the seed as the garden: %w", err)
	}
	built, err := t.Build(ctx, image.Binary{Name: imageAdmission, Package: kind.ModulePath + "/cmd/registry-cache-admission"})
	if err != nil {
		return err
	}
	admission := admission(t, built[0].Ref)
	return progress.InOrder(ctx,
		func(ctx context.Context) error { return image.Load(ctx, t.Seed.Nodes(), built) },
		// The Shoot definition comes first: the webhook needs the REST mapping of Shoots.
		func(ctx context.Context) error { return gardener.InstallShootDefinition(ctx, garden.Client()) },
		func(ctx context.Context) error { return admission.Deploy(ctx, garden) },
		func(ctx context.Context) error { return admission.Wait(ctx, garden.Client()) },
	)
}

// RemoveAdmission reverts InstallAdmission and deletes all Shoots in the seed's API server.
func RemoveAdmission(ctx context.Context, t *kind.Testbed) error {
	garden, err := gardener.NewSeedClient(t.Seed.RESTConfig())
	if err != nil {
		return fmt.Errorf("connect to the seed as the garden: %w", err)
	}
	// Rendering the charts needs an image, but it does not matter which one.
	if err := admission(t, imageAdmission).Remove(ctx, garden); err != nil {
		return err
	}
	return gardener.RemoveShootDefinition(ctx, garden.Client())
}

func admission(t *kind.Testbed, ref string) gardener.Admission {
	charts := filepath.Join(t.Root, "charts", imageAdmission)
	return gardener.Admission{
		Name: "gardener-extension-" + imageAdmission, Namespace: AdmissionNamespace, Image: ref,
		Application: os.DirFS(filepath.Join(charts, "application")), Runtime: os.DirFS(filepath.Join(charts, "runtime")),
	}
}
