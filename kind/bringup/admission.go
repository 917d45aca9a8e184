package bringup

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/gardener"
	"github.com/gardener-extensions/registry-cache/kind/image"
	"github.com/gardener-extensions/registry-cache/kind/progress"
)

// admissionCharts is the folder of the admission's charts, below the root of the repository.
const admissionCharts = "charts/" + kind.ImageAdmission

// InstallAdmission uses the seed cluster as a garden, see gardener.InstallShootDefinition, and
// installs the admission there with its image and charts, as users do without gardener-operator. It
// returns when the pods are ready and the webhook is registered; the API server may start to call
// it a little later. The first call builds the image, which takes seconds. Up neither installs nor
// removes any of this.
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
		// A garden serves Shoots before it has an admission; the webhook needs their REST mapping.
		func(ctx context.Context) error { return gardener.InstallShootDefinition(ctx, garden.Client()) },
		func(ctx context.Context) error { return admission.Deploy(ctx, garden) },
		func(ctx context.Context) error { return admission.Wait(ctx, garden.Client()) },
	)
}

// RemoveAdmission reverts InstallAdmission and deletes all Shoots in the seed's API server. Missing
// objects are not an error.
func RemoveAdmission(ctx context.Context, t *kind.Testbed) error {
	garden, err := gardener.NewSeedClient(t.Seed.RESTConfig())
	if err != nil {
		return fmt.Errorf("connect to the seed as the garden: %w", err)
	}
	// The charts need some image to render.
	if err := admission(t, kind.ImageAdmission).Remove(ctx, garden); err != nil {
		return err
	}
	return gardener.RemoveShootDefinition(ctx, garden.Client())
}

func admission(t *kind.Testbed, ref string) gardener.Admission {
	return gardener.Admission{
		Name:        "gardener-extension-" + kind.ImageAdmission,
		Namespace:   kind.AdmissionNamespace,
		Application: os.DirFS(filepath.Join(t.Root, admissionCharts, "application")),
		Runtime:     os.DirFS(filepath.Join(t.Root, admissionCharts, "runtime")),
		Image:       ref,
	}
}
