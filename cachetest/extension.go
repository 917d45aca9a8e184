// Package cachetest contains all that the testbed knows about registry caches: the extension, its
// caches in the shoot, what it adds to the status, to exports and to faults, and Shoots with
// caches. Of its subpackages, pull finds out who served a pull, original stands in for the
// extension that this one replaces, and fieldbugs lists the bugs that users reported.
//
// Packages in the folder kind must not import this package or the extension, see kind.Extension.
package cachetest

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/charts"
	"github.com/gardener-extensions/registry-cache/examples"
	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/bringup"
	"github.com/gardener-extensions/registry-cache/kind/image"
	"github.com/gardener-extensions/registry-cache/kind/progress"
)

const (
	// ExtensionNamespace is the extension's namespace on the seed of a testbed without a garden. Its
	// ServiceAccounts are audited.
	ExtensionNamespace = "extension-" + v1alpha3.ExtensionType
	// AdmissionNamespace is the admission's namespace in the garden. Its ServiceAccounts are audited.
	AdmissionNamespace = "registry-cache-admission"
	// AdmissionRuntimeNamespace is the same in the garden's runtime cluster, which is also the seed.
	AdmissionRuntimeNamespace = "registry-cache-admission-runtime"

	// reserve is the percentage of a volume that a cache keeps free.
	reserve = 5

	imageCache     = "registry-cache"
	imageExtension = "registry-cache-extension"
)

// Extension returns the extension of this repository.
func Extension() kind.Extension {
	return kind.Extension{
		Name:         v1alpha3.ExtensionType,
		Registration: examples.ControllerRegistration,
		Chart:        charts.Extension(),
		Sources:      func(root string) fs.FS { return os.DirFS(filepath.Join(root, "charts", imageExtension)) },
		Values:       func(built image.Set) map[string]any { return values(built, built[imageCache]) },
		Images: []kind.ExtensionImage{
			{Binary: image.Binary{Name: imageExtension, Package: kind.ModulePath + "/cmd/registry-cache-extension"}, OnSeed: true},
			// The seed's node runs caches of additional Shoots.
			{Binary: image.Binary{Name: imageCache, Package: kind.ModulePath + "/cmd/registry-cache"}, OnSeed: true, OnShoot: true},
		},
		Webhooks:  []string{"gardener-extension-" + v1alpha3.ExtensionType},
		Accounts:  []string{AdmissionNamespace, AdmissionRuntimeNamespace},
		Configure: configure,
		Await:     kind.Wait{Name: "nodes pull through the caches", Until: awaitMirrors},
		Replaced:  kind.Wait{Name: "caches in the shoot", Until: awaitCaches},
		Reporter:  reporter{},
		Targets:   targets{},
		CheckDisk: checkDisk,
	}
}

// checkDisk warns if caches without cache.limit, as an earlier version deploys them, store nothing:
// they keep a part of the whole file system free, which all nodes share.
func checkDisk(size, free uint64) string {
	const gib = 1 << 30
	if kept := size / 100 * reserve; free < kept {
		return fmt.Sprintf("%.1f GiB are free; with less than %.1f GiB, %d %% of the file system, caches without cache.limit let blobs pass through, "+
			"and the scenario upgrade fails: free some space", float64(free)/gib, float64(kept)/gib, reserve)
	}
	return ""
}

func configure(ctx context.Context, upstreams []string) ([]byte, error) {
	shoot, err := Shoot(upstreams...)
	if err != nil || len(shoot.Spec.Extensions) == 0 {
		return nil, err
	}
	for _, host := range upstreams {
		progress.Note(ctx, "cache for %s", host)
	}
	return shoot.Spec.Extensions[0].ProviderConfig.Raw, nil
}

// values returns the chart's values that an operator sets in the ControllerDeployment to use other
// images. The values also make the extension check caches often enough for tests.
func values(built image.Set, cache image.Built) map[string]any {
	return map[string]any{
		"image":       map[string]any{"ref": built[imageExtension].Ref},
		"controllers": map[string]any{"healthCheckPeriod": "10s"},
		"imageVectorOverwrite": map[string]any{"images": []any{
			map[string]any{"name": charts.ImageRegistryCache, "ref": cache.Ref},
			map[string]any{"name": charts.ImageRegistryCleaner, "ref": built[imageCache].Ref},
		}},
	}
}

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
	delete(values, "controllers") // the older chart might not know the value
	return bringup.Install(ctx, t, chart, values)
}

// StockImage builds distribution's stock image, loads it onto the nodes, and returns the image.
func StockImage(ctx context.Context, t *kind.Testbed) (image.Built, error) {
	built, err := t.Build(ctx, image.Distribution(t.Root))
	if err != nil {
		return image.Built{}, err
	}
	return built[0], image.Load(ctx, t.Shoot.Workers(), built)
}
