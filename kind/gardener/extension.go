package gardener

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"

	gardencorev1 "github.com/gardener/gardener/pkg/apis/core/v1"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	"github.com/gardener/gardener/pkg/gardenlet/controller/controllerinstallation/controllerinstallation"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardener-extensions/registry-cache/charts"
)

// Extension is an extension that gardenlet installs into the seed.
type Extension struct {
	// Name of its ControllerInstallation: the extension runs in namespace extension-<Name>.
	Name string
	// Registration says what the extension is responsible for. Its deploymentRefs are not looked at.
	Registration *gardencorev1beta1.ControllerRegistration
	// Chart is the directory of its Helm chart.
	Chart fs.FS
	// Values for the chart; gardenlet adds the ones below "gardener".
	Values map[string]any
}

// Deploy installs or updates the extension by gardenlet's own ControllerInstallation reconciler: it renders the chart,
// prepares the namespace, and writes a ManagedResource of class seed, which SeedResourceManager applies. Objects that an
// older version of the chart had and this one has not are removed by it.
//
// The garden that the reconciler reads is NewGarden, with a Seed, this extension's Registration, and a ControllerDeployment
// and ControllerInstallation made from the fields.
func (e Extension) Deploy(ctx context.Context, seed kubernetes.Interface) error {
	garden, err := e.gardenObjects()
	if err != nil {
		return err
	}
	if err := EnsureGardenNamespace(ctx, seed.Client()); err != nil {
		return err
	}
	reconciler := &controllerinstallation.Reconciler{
		GardenClient:          NewGarden(garden...),
		SeedClientSet:         seed,
		Clock:                 clock.RealClock{},
		Identity:              &gardencorev1beta1.Gardener{Name: "gardenlet", Version: Version},
		GardenClusterIdentity: "testbed",
		GardenNamespace:       GardenNamespace,
	}
	if _, err := reconciler.Reconcile(ctx, reconcile.Request{NamespacedName: client.ObjectKey{Name: e.Name}}); err != nil {
		return fmt.Errorf("install extension %s: %w", e.Name, err)
	}
	return nil
}

// gardenObjects are what an operator and Gardener's control plane create in the garden for an extension on a seed.
func (e Extension) gardenObjects() ([]client.Object, error) {
	archive, err := charts.Archive(e.Chart, e.Name)
	if err != nil {
		return nil, err
	}
	values, err := json.Marshal(e.Values)
	if err != nil {
		return nil, fmt.Errorf("extension %s: encode the chart values: %w", e.Name, err)
	}
	return []client.Object{
		NewSeed(),
		e.Registration.DeepCopy(),
		&gardencorev1.ControllerDeployment{
			ObjectMeta: metav1.ObjectMeta{Name: e.Name},
			Helm:       &gardencorev1.HelmControllerDeployment{RawChart: archive, Values: &apiextensionsv1.JSON{Raw: values}},
		},
		&gardencorev1beta1.ControllerInstallation{
			// gardener-controller-manager copies the pod security annotation from the registration.
			ObjectMeta: metav1.ObjectMeta{Name: e.Name, Annotations: e.Registration.Annotations},
			Spec: gardencorev1beta1.ControllerInstallationSpec{
				RegistrationRef: corev1.ObjectReference{Name: e.Registration.Name},
				SeedRef:         &corev1.ObjectReference{Name: SeedName},
				DeploymentRef:   &corev1.ObjectReference{Name: e.Name},
			},
		},
	}, nil
}
