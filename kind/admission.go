package kind

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gardener-extensions/registry-cache/kind/gardener"
	"github.com/gardener-extensions/registry-cache/kind/image"
)

// admissionCharts is the folder of its charts below the root of the repository.
const admissionCharts = "charts/" + ImageAdmission

// InstallAdmission makes the seed cluster stand in for the garden, see gardener.InstallShootDefinition, and installs the
// admission there: its own image and charts, as a user does without gardener-operator. It returns when the pods are ready
// and the webhook is registered; API servers may take another moment to call it. The image is built on the first call, which
// takes seconds. Up neither installs nor removes any of it.
func (t *Testbed) InstallAdmission(ctx context.Context) error {
	garden, err := gardener.NewSeedClient(t.seed.RESTConfig())
	if err != nil {
		return fmt.Errorf("connect to the seed as the garden: %w", err)
	}
	built, err := t.build(ctx, image.Binary{Name: ImageAdmission, Package: ModulePath + "/cmd/registry-cache-admission"})
	if err != nil {
		return err
	}
	admission := t.admission(built[0].Ref)
	return inOrder(ctx,
		func(ctx context.Context) error { return loadImages(ctx, t.seed.Nodes(), built) },
		// A garden serves Shoots before there is any admission; the webhook is registered by their REST mapping.
		func(ctx context.Context) error { return gardener.InstallShootDefinition(ctx, garden.Client()) },
		func(ctx context.Context) error { return admission.Deploy(ctx, garden) },
		func(ctx context.Context) error { return admission.Wait(ctx, garden.Client()) },
	)
}

// RemoveAdmission takes InstallAdmission back, with all Shoots in the seed's API server. What is not there is no error.
func (t *Testbed) RemoveAdmission(ctx context.Context) error {
	garden, err := gardener.NewSeedClient(t.seed.RESTConfig())
	if err != nil {
		return fmt.Errorf("connect to the seed as the garden: %w", err)
	}
	return inOrder(ctx,
		// The charts do not render without an image; which one it is does not matter to what is deleted.
		func(ctx context.Context) error { return t.admission(ImageAdmission).Remove(ctx, garden) },
		func(ctx context.Context) error { return gardener.RemoveShootDefinition(ctx, garden.Client()) },
	)
}

func (t *Testbed) admission(ref string) gardener.Admission {
	return gardener.Admission{
		Name:        "gardener-extension-" + ImageAdmission,
		Namespace:   AdmissionNamespace,
		Application: os.DirFS(filepath.Join(t.root, admissionCharts, "application")),
		Runtime:     os.DirFS(filepath.Join(t.root, admissionCharts, "runtime")),
		Image:       ref,
	}
}
