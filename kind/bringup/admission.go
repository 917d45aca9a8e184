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

// admissionCharts is the folder of its charts below the root of the repository.
const admissionCharts = "charts/" + kind.ImageAdmission

// InstallAdmission makes the seed cluster stand in for the garden, see gardener.InstallShootDefinition, and installs the
// admission there: its own image and charts, as a user does without gardener-operator. It returns when the pods are ready
// and the webhook is registered; API servers may take another moment to call it. The image is built on the first call, which
// takes seconds. Up neither installs nor removes any of it.
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
		// A garden serves Shoots before there is any admission; the webhook is registered by their REST mapping.
		func(ctx context.Context) error { return gardener.InstallShootDefinition(ctx, garden.Client()) },
		func(ctx context.Context) error { return admission.Deploy(ctx, garden) },
		func(ctx context.Context) error { return admission.Wait(ctx, garden.Client()) },
	)
}

// RemoveAdmission takes InstallAdmission back, with all Shoots in the seed's API server. What is not there is no error.
func RemoveAdmission(ctx context.Context, t *kind.Testbed) error {
	garden, err := gardener.NewSeedClient(t.Seed.RESTConfig())
	if err != nil {
		return fmt.Errorf("connect to the seed as the garden: %w", err)
	}
	return progress.InOrder(ctx,
		// The charts do not render without an image; which one it is does not matter to what is deleted.
		func(ctx context.Context) error { return admission(t, kind.ImageAdmission).Remove(ctx, garden) },
		func(ctx context.Context) error { return gardener.RemoveShootDefinition(ctx, garden.Client()) },
	)
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
