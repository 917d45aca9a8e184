package gardener

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"strings"
	"time"

	gardencorev1 "github.com/gardener/gardener/pkg/apis/core/v1"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	"github.com/gardener/gardener/pkg/chartrenderer"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	fakekubernetes "github.com/gardener/gardener/pkg/client/kubernetes/fake"
	"github.com/gardener/gardener/pkg/gardenlet/controller/controllerinstallation/controllerinstallation"
	"github.com/gardener/gardener/pkg/utils/kubernetes/health"
	"github.com/gardener/gardener/pkg/utils/managedresources"
	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gardener-extensions/registry-cache/internal/helmchart"
)

// Extension describes an extension that gardenlet installs into the seed.
type Extension struct {
	Name string
	// Installation is the name of its ControllerInstallation, by default Name. The extension runs in
	// namespace extension-<Installation>.
	Installation string
	// Registration lists the resources that the extension handles. Its deploymentRefs are ignored.
	Registration *gardencorev1beta1.ControllerRegistration
	Chart        fs.FS          // the directory of its Helm chart
	Values       map[string]any // for the chart; gardenlet adds the values below "gardener"
	Webhooks     []string       // the MutatingWebhookConfigurations that the extension registers in the seed
}

// Deploy installs or updates the extension with gardenlet's ControllerInstallation reconciler: it
// renders the chart, prepares the namespace, and writes a ManagedResource of class seed, which
// SeedResourceManager applies. SeedResourceManager also deletes objects that only an older version
// of the chart contained. The garden is a client in memory, so no real garden is needed.
func (e Extension) Deploy(ctx context.Context, seed kubernetes.Interface) error {
	garden, err := e.gardenObjects()
	if err != nil {
		return err
	}
	if err := EnsureGardenNamespace(ctx, seed.Client()); err != nil {
		return err
	}
	if err := render(ctx, NewGarden(garden...), seed, e.Name); err != nil {
		return fmt.Errorf("install extension %s: %w", e.Name, err)
	}
	return DeployNetworkPolicies(ctx, seed.Client(), GardenNamespace, e.Namespace())
}

// render runs gardenlet's ControllerInstallation reconciler once.
func render(ctx context.Context, garden client.Client, seed kubernetes.Interface, installation string) error {
	reconciler := &controllerinstallation.Reconciler{
		GardenClient:          garden,
		SeedClientSet:         seed,
		Clock:                 clock.RealClock{},
		Identity:              Identity(),
		GardenClusterIdentity: GardenIdentity,
		GardenNamespace:       GardenNamespace,
	}
	_, err := reconciler.Reconcile(ctx, reconcile.Request{NamespacedName: client.ObjectKey{Name: installation}})
	return err
}

// checkRendered returns an error unless the seed contains what gardenlet now renders for the
// ControllerInstallation. gardenlet does not report which ControllerDeployment it has rendered. So
// checkRendered renders into memory, and compares the names of the Secrets, which contain hashes.
func checkRendered(ctx context.Context, garden client.Client, seed kubernetes.Interface, installation string) error {
	memory := fake.NewClientBuilder().WithScheme(kubernetes.SeedScheme).Build()
	inMemory := fakekubernetes.NewClientSetBuilder().WithClient(memory).WithChartRenderer(seed.ChartRenderer()).Build()
	if err := render(logf.IntoContext(ctx, logr.Discard()), client.NewDryRunClient(garden), inMemory, installation); err != nil {
		return err
	}
	wanted, found := &resourcesv1alpha1.ManagedResource{}, &resourcesv1alpha1.ManagedResource{}
	key := client.ObjectKey{Namespace: GardenNamespace, Name: installation}
	err := errors.Join(memory.Get(ctx, key, wanted), seed.Client().Get(ctx, key, found))
	if err == nil && !reflect.DeepEqual(found.Spec.SecretRefs, wanted.Spec.SecretRefs) {
		err = fmt.Errorf("gardenlet has not yet rendered the update of ControllerInstallation %s", installation)
	}
	return err
}

// deployment returns the ControllerDeployment with the chart and its values.
func (e Extension) deployment() (*gardencorev1.ControllerDeployment, error) {
	archive, err := helmchart.Archive(e.Chart, e.Name)
	if err != nil {
		return nil, err
	}
	values, err := json.Marshal(e.Values)
	if err != nil {
		return nil, fmt.Errorf("extension %s: encode the chart values: %w", e.Name, err)
	}
	return &gardencorev1.ControllerDeployment{
		ObjectMeta: metav1.ObjectMeta{Name: e.Name},
		Helm:       &gardencorev1.HelmControllerDeployment{RawChart: archive, Values: &apiextensionsv1.JSON{Raw: values}},
	}, nil
}

func (e Extension) gardenObjects() ([]client.Object, error) {
	deployment, err := e.deployment()
	if err != nil {
		return nil, err
	}
	return []client.Object{
		NewSeed(),
		e.Registration.DeepCopy(),
		deployment,
		&gardencorev1beta1.ControllerInstallation{
			// In a garden, gardener-controller-manager copies the pod security annotation here.
			ObjectMeta: metav1.ObjectMeta{Name: e.Name, Annotations: e.Registration.Annotations},
			Spec: gardencorev1beta1.ControllerInstallationSpec{
				RegistrationRef: corev1.ObjectReference{Name: e.Registration.Name},
				SeedRef:         &corev1.ObjectReference{Name: SeedName},
				DeploymentRef:   &corev1.ObjectReference{Name: e.Name},
			},
		},
	}, nil
}

// Offer creates or updates the extension's ControllerRegistration and ControllerDeployment in the
// garden. gardener-controller-manager creates a ControllerInstallation when a Shoot needs the
// extension. If there is one already, Offer waits up to a minute until gardenlet has rendered the
// update into the seed.
func (e Extension) Offer(ctx context.Context, garden client.Client, seed kubernetes.Interface) error {
	deployment, err := e.deployment()
	if err != nil {
		return err
	}
	registration := e.Registration.DeepCopy()
	registration.Spec.Deployment = &gardencorev1beta1.ControllerRegistrationDeployment{
		DeploymentRefs: []gardencorev1beta1.DeploymentRef{{Name: deployment.Name}},
	}
	if err := apply(ctx, garden, deployment, registration); err != nil {
		return fmt.Errorf("offer extension %s in the garden: %w", e.Name, err)
	}
	return Poll(ctx, time.Minute, "extension "+e.Name+" is not updated in the garden", func(ctx context.Context) error {
		if err := garden.Get(ctx, client.ObjectKeyFromObject(deployment), deployment); err != nil {
			return err
		}
		installations := &gardencorev1beta1.ControllerInstallationList{}
		if err := garden.List(ctx, installations); err != nil {
			return err
		}
		for _, installation := range installations.Items {
			if installation.Spec.RegistrationRef.Name != registration.Name || installation.DeletionTimestamp != nil {
				continue
			}
			if ptr.Deref(installation.Spec.DeploymentRef, corev1.ObjectReference{}).ResourceVersion != deployment.ResourceVersion {
				return fmt.Errorf("ControllerInstallation %s refers to the last ControllerDeployment", installation.Name)
			}
			if err := checkRendered(ctx, garden, seed, installation.Name); err != nil {
				return err
			}
		}
		return nil
	})
}

// Installed returns the extension with the Installation that a garden has generated, or nil if no
// Shoot has needed the extension.
func (e Extension) Installed(ctx context.Context, seed client.Client) (*Extension, error) {
	namespaces := &corev1.NamespaceList{}
	if err := seed.List(ctx, namespaces, client.MatchingLabels{v1beta1constants.LabelControllerRegistrationName: e.Registration.Name}); err != nil {
		return nil, fmt.Errorf("list the namespaces of extension %s: %w", e.Name, err)
	}
	for _, namespace := range namespaces.Items {
		if namespace.DeletionTimestamp == nil {
			e.Installation = strings.TrimPrefix(namespace.Name, namespacePrefix)
			return &e, nil
		}
	}
	return nil, nil
}

// Wait waits until the extension's ManagedResource is healthy (up to a minute), its pods are ready
// (two minutes for each Deployment), and each webhook configuration has a CA bundle (a minute).
func (e Extension) Wait(ctx context.Context, seed client.Client) error {
	defer RequeueDeletions(ctx, seed, GardenNamespace)()
	err := Poll(ctx, time.Minute, "not healthy", func(ctx context.Context) error {
		return managedresources.WaitUntilHealthy(ctx, seed, GardenNamespace, e.installation())
	})
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("wait for extension %s: %w", e.Name, err)
	}
	// Check the Deployments even after an error, because they explain it best.
	deployments := &appsv1.DeploymentList{}
	if err := seed.List(ctx, deployments, client.InNamespace(e.Namespace())); err != nil {
		return fmt.Errorf("list the deployments of extension %s: %w", e.Name, err)
	}
	for _, deployment := range deployments.Items {
		if err := WaitForDeployment(ctx, seed, client.ObjectKeyFromObject(&deployment)); err != nil {
			return fmt.Errorf("extension %s: %w", e.Name, err)
		}
	}
	if err != nil {
		return fmt.Errorf("managed resource %s/%s of extension %s: %w", GardenNamespace, e.installation(), e.Name, err)
	}
	for _, name := range e.Webhooks {
		registration := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := WaitForRegistration(ctx, seed, registration); err != nil {
			return fmt.Errorf("extension %s: %w", e.Name, err)
		}
	}
	return nil
}

// Namespace returns the name of the namespace in the seed in which the extension runs.
func (e Extension) Namespace() string { return namespacePrefix + e.installation() }

// namespacePrefix is how gardenlet begins the name of an extension's namespace.
const namespacePrefix = "extension-"

func (e Extension) installation() string { return cmp.Or(e.Installation, e.Name) }

// Objects returns what Deploy writes into an empty seed, in the order in which to apply it:
// the extension's namespace, the Secret with the rendered chart, and the ManagedResource that
// refers to the Secret. Objects runs the same reconciler on an in-memory seed, so it contacts no
// cluster. The same fields result in the same objects. Pass the renderer of the seed's client set,
// since the chart may use the Kubernetes version.
func (e Extension) Objects(ctx context.Context, renderer chartrenderer.Interface) ([]*unstructured.Unstructured, error) {
	memory := fake.NewClientBuilder().WithScheme(kubernetes.SeedScheme).Build()
	seed := fakekubernetes.NewClientSetBuilder().WithClient(memory).WithChartRenderer(renderer).Build()
	ctx = logf.IntoContext(ctx, logr.Discard())
	if err := e.Deploy(ctx, seed); err != nil {
		return nil, err
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: e.Namespace()}}
	resource := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: GardenNamespace, Name: e.Name}}
	if err := memory.Get(ctx, client.ObjectKeyFromObject(resource), resource); err != nil {
		return nil, fmt.Errorf("read the ManagedResource of extension %s: %w", e.Name, err)
	}
	written := []client.Object{namespace}
	for _, reference := range resource.Spec.SecretRefs {
		written = append(written, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: GardenNamespace, Name: reference.Name}})
	}
	var objects []*unstructured.Unstructured
	for _, object := range append(written, resource) {
		if err := memory.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return nil, fmt.Errorf("read back what gardenlet installs for extension %s: %w", e.Name, err)
		}
		object.SetResourceVersion("") // of the in-memory seed
		configuration, err := applyConfiguration(object, memory.Scheme())
		if err != nil {
			return nil, err
		}
		objects = append(objects, configuration)
	}
	return objects, nil
}

// Reconcile makes the extension reconcile each of its Extension resources: it sets the annotation
// gardener.cloud/operation, as gardenlet does. Use it after the extension has been replaced but no
// Shoot has changed. Reconcile skips resources that are being deleted, waits up to a minute for
// each of the others, and returns their number.
func (e Extension) Reconcile(ctx context.Context, seed client.Client) (int, error) {
	extensions := &extensionsv1alpha1.ExtensionList{}
	if err := seed.List(ctx, extensions); err != nil {
		return 0, fmt.Errorf("list the Extensions in the seed: %w", err)
	}
	count := 0
	for _, extension := range extensions.Items {
		if extension.Spec.Type != e.Name || extension.DeletionTimestamp != nil {
			continue
		}
		count++
		if err := reconcileOne(ctx, seed, &extension); err != nil {
			return count, fmt.Errorf("extension %s: %w", client.ObjectKeyFromObject(&extension), err)
		}
	}
	return count, nil
}

func reconcileOne(ctx context.Context, seed client.Client, extension *extensionsv1alpha1.Extension) error {
	var before metav1.Time
	if last := extension.Status.LastOperation; last != nil {
		before = last.LastUpdateTime
	}
	// The old status remains until the extension has seen the annotation.
	done := health.And(health.CheckExtensionObject, health.ExtensionOperationHasBeenUpdatedSince(before))

	patch := client.MergeFrom(extension.DeepCopy())
	metav1.SetMetaDataAnnotation(&extension.ObjectMeta, v1beta1constants.GardenerOperation, v1beta1constants.GardenerOperationReconcile)
	if err := seed.Patch(ctx, extension, patch); err != nil {
		return fmt.Errorf("annotate for reconciliation: %w", err)
	}
	return Poll(ctx, time.Minute, "not reconciled", func(ctx context.Context) error {
		if err := seed.Get(ctx, client.ObjectKeyFromObject(extension), extension); err != nil {
			return err
		}
		return done(extension)
	})
}
