package bringup

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gardener-extensions/registry-cache/charts"
	"github.com/gardener-extensions/registry-cache/examples"
	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/gardener"
	"github.com/gardener-extensions/registry-cache/kind/image"
	"github.com/gardener-extensions/registry-cache/kind/progress"
)

// installGardener installs Gardener's parts in both clusters, and the extension as gardenlet would.
func installGardener(ctx context.Context, t *kind.Testbed) error {
	registration, err := examples.ControllerRegistration()
	if err != nil {
		return err
	}
	if t.Gardenlet, err = t.NewGardenlet(registration); err != nil {
		return err
	}
	return inOrder(ctx, t,
		step("priority classes in the shoot", func(ctx context.Context, t *kind.Testbed) error {
			return gardener.InstallPriorityClasses(ctx, t.Gardenlet.Shoot.Client())
		}),
		step("extension", func(ctx context.Context, t *kind.Testbed) error {
			return install(ctx, t, charts.Extension(), chartValues(t, CacheImage(t)))
		}),
	)
}

func installSeed(ctx context.Context, t *kind.Testbed) error {
	client, err := gardener.NewSeedClient(t.Seed.RESTConfig())
	if err != nil {
		return fmt.Errorf("connect to the seed: %w", err)
	}
	manager := gardener.SeedResourceManager(t.Images[kind.ImageResourceManager].Ref)
	osExtension := gardener.OSExtension{Image: t.Images[kind.ImageOSExtension].Ref}
	return inOrder(ctx, client.Client(), gardener.InstallCRDs, gardener.InstallSeedPriorityClasses, gardener.EnsureGardenNamespace,
		manager.Deploy, osExtension.Deploy, manager.Wait, osExtension.Wait)
}

// CacheImage returns this repository's image for caches. Up configures the extension to use it.
func CacheImage(t *kind.Testbed) image.Built { return t.Images[kind.ImageCache] }

// UseCacheImage makes the extension use another image for caches, until the next Up. The shoot's
// nodes must have that image. Running caches change when the Shoot is reconciled.
func UseCacheImage(ctx context.Context, t *kind.Testbed, cache image.Built) error {
	return install(ctx, t, charts.Extension(), chartValues(t, cache))
}

// InstallStopped installs the extension from an older chart, with current images and no replicas.
// This simulates a seed before an update. UseCacheImage and Up then update to the current chart.
func InstallStopped(ctx context.Context, t *kind.Testbed, chart fs.FS) error {
	values := chartValues(t, CacheImage(t))
	values["replicaCount"] = 0
	delete(values, "controllers") // the older chart may not know the value
	return install(ctx, t, chart, values)
}

func install(ctx context.Context, t *kind.Testbed, chart fs.FS, values map[string]any) error {
	seed, err := gardener.NewSeedClient(t.Seed.RESTConfig())
	if err != nil {
		return fmt.Errorf("connect to the seed: %w", err)
	}
	registration, err := examples.ControllerRegistration()
	if err != nil {
		return err
	}
	extension := gardener.Extension{Name: kind.ExtensionName, Registration: registration, Chart: chart, Values: values}
	if err := extension.Deploy(ctx, seed); err != nil {
		return err
	}
	return extension.Wait(ctx, seed.Client())
}

// chartValues returns what an operator sets in the ControllerDeployment to use other images, and
// makes the extension check caches often enough for tests.
func chartValues(t *kind.Testbed, cache image.Built) map[string]any {
	return map[string]any{
		"image":       map[string]any{"ref": t.Images[kind.ImageExtension].Ref},
		"controllers": map[string]any{"healthCheckPeriod": "10s"},
		"imageVectorOverwrite": map[string]any{"images": []any{
			map[string]any{"name": charts.ImageRegistryCache, "ref": cache.Ref},
			map[string]any{"name": charts.ImageRegistryCleaner, "ref": CacheImage(t).Ref},
		}},
	}
}

// StockCacheImage builds distribution's stock image for UseCacheImage, and loads it onto the nodes.
func StockCacheImage(ctx context.Context, t *kind.Testbed) (image.Built, error) {
	built, err := t.Build(ctx, image.Distribution(t.Root))
	if err != nil {
		return image.Built{}, err
	}
	return built[0], image.Load(ctx, t.Shoot.Workers(), built)
}

func buildImages(ctx context.Context, t *kind.Testbed) error {
	return t.BuildImages(ctx, kind.Binaries()...)
}

// loadSeed loads images onto the seed's node, which also runs caches of additional Shoots.
func loadSeed(ctx context.Context, t *kind.Testbed) error {
	onSeed := t.Images.Pick(kind.ImageExtension, kind.ImageOSExtension, kind.ImageResourceManager, kind.ImageCache)
	return image.Load(ctx, t.Seed.Nodes(), onSeed)
}

func loadShoot(ctx context.Context, t *kind.Testbed) error {
	return image.Load(ctx, t.Shoot.Nodes(), t.Images.Pick(kind.ImageCache))
}

// InstallAdmission uses the seed as a garden, see gardener.InstallShootDefinition, and installs the
// admission there from its charts. It waits until pods and webhook registration are ready; the API
// server may start to call the webhook a little later. Up never installs or removes the admission.
func InstallAdmission(ctx context.Context, t *kind.Testbed) error {
	garden, err := gardener.NewSeedClient(t.Seed.RESTConfig())
	if err != nil {
		return fmt.Errorf("connect to the seed as the garden: %w", err)
	}
	built, err := t.Build(ctx, image.Binary{Name: kind.ImageAdmission, Package: kind.ModulePath + "/cmd/registry-cache-admission"})
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
	if err := admission(t, kind.ImageAdmission).Remove(ctx, garden); err != nil {
		return err
	}
	return gardener.RemoveShootDefinition(ctx, garden.Client())
}

func admission(t *kind.Testbed, ref string) gardener.Admission {
	charts := filepath.Join(t.Root, "charts", kind.ImageAdmission)
	return gardener.Admission{
		Name: "gardener-extension-" + kind.ImageAdmission, Namespace: kind.AdmissionNamespace, Image: ref,
		Application: os.DirFS(filepath.Join(charts, "application")), Runtime: os.DirFS(filepath.Join(charts, "runtime")),
	}
}
