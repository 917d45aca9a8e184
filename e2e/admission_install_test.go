//go:build e2e

package e2e

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	"github.com/gardener/gardener/pkg/component"
	"github.com/gardener/gardener/pkg/component/crddeployer"
	kubernetesutils "github.com/gardener/gardener/pkg/utils/kubernetes"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/cachetest"
	"github.com/gardener-extensions/registry-cache/internal/helmchart"
	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/gardener"
	"github.com/gardener-extensions/registry-cache/kind/image"
	"github.com/gardener-extensions/registry-cache/kind/progress"
)

// installAdmission uses the seed as a garden, see installShootDefinition, and installs the
// admission there from its charts. It waits until the pods are ready and the webhook is registered;
// the API server may start to call the webhook a little later.
func installAdmission(ctx context.Context, t *kind.Testbed) error {
	garden, err := gardener.NewSeedClient(t.Seed.RESTConfig())
	if err != nil {
		return err
	}
	built, err := t.Build(ctx, image.Binary{Name: "registry-cache-admission", Package: kind.ModulePath + "/cmd/registry-cache-admission"})
	if err != nil {
		return err
	}
	installed := admissionCharts{root: t.Root, image: built[0].Ref}
	return progress.InOrder(ctx,
		func(ctx context.Context) error { return image.Load(ctx, t.Seed.Nodes(), built) },
		// The Shoot definition comes first: the webhook needs the REST mapping of Shoots.
		func(ctx context.Context) error { return installShootDefinition(ctx, garden.Client()) },
		func(ctx context.Context) error { return installed.deploy(ctx, garden) },
		func(ctx context.Context) error {
			return gardener.WaitForDeployment(ctx, garden.Client(), client.ObjectKeyFromObject(admissionDeployment()))
		},
		func(ctx context.Context) error {
			return gardener.WaitForRegistration(ctx, garden.Client(), admissionRegistration())
		},
	)
}

// removeAdmission reverts installAdmission and deletes all Shoots in the seed's API server.
func removeAdmission(ctx context.Context, t *kind.Testbed) error {
	garden, err := gardener.NewSeedClient(t.Seed.RESTConfig())
	if err != nil {
		return err
	}
	// Rendering the charts needs an image, but it does not matter which one.
	if err := (admissionCharts{root: t.Root, image: "none"}).remove(ctx, garden); err != nil {
		return err
	}
	return removeShootDefinition(ctx, garden.Client())
}

// admissionCharts deploys and removes the two charts of the admission in a garden without
// gardener-operator. Both charts use one namespace of the garden's cluster, where the pods also
// run.
type admissionCharts struct{ root, image string }

// deploy renders and applies the application chart (RBAC), then the runtime chart.
func (a admissionCharts) deploy(ctx context.Context, garden kubernetes.Interface) error {
	err := garden.Client().Create(ctx, admissionNamespace())
	if err = client.IgnoreAlreadyExists(err); err == nil {
		ok := true // the runtime chart needs the RBAC objects
		err = a.eachChart(func(archive []byte, values any) (err error) {
			if ok {
				err = garden.ChartApplier().ApplyFromArchive(ctx, archive, cachetest.AdmissionNamespace, admissionName, kubernetes.Values(values))
				ok = err == nil
			}
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("deploy %s: %w", admissionName, err)
	}
	return nil
}

// remove deletes everything that deploy and the pods created, and waits up to two minutes until it
// is gone. Missing objects are not an error.
func (a admissionCharts) remove(ctx context.Context, garden kubernetes.Interface) error {
	ctx, cancel := progress.Within(ctx, 2*time.Minute, "not done")
	defer cancel()
	// Delete the webhook first, or the API server would call a webhook without pods. Delete the RBAC
	// objects after the pods.
	failed := errors.Join(removeAndWait(ctx, garden.Client(), admissionRegistration()), removeAndWait(ctx, garden.Client(), admissionDeployment()),
		a.eachChart(func(archive []byte, values any) error {
			return garden.ChartApplier().DeleteFromArchive(ctx, archive, cachetest.AdmissionNamespace, admissionName, kubernetes.Values(values))
		}), removeAndWait(ctx, garden.Client(), admissionNamespace()))
	if failed != nil {
		return fmt.Errorf("remove %s: %w", admissionName, failed)
	}
	return nil
}

// removeAndWait deletes an object and its dependents, and waits until it is gone.
func removeAndWait(ctx context.Context, garden client.Client, object client.Object) error {
	if err := garden.Delete(ctx, object, client.PropagationPolicy(metav1.DeletePropagationForeground)); err != nil {
		return client.IgnoreNotFound(err)
	}
	return kubernetesutils.WaitUntilResourceDeleted(ctx, garden, object, 200*time.Millisecond)
}

// eachChart calls function do with the archive and values of each chart, even after an error.
func (a admissionCharts) eachChart(do func(archive []byte, values any) error) (failed error) {
	account := map[string]any{"name": admissionName, "namespace": cachetest.AdmissionNamespace}
	for _, chart := range []struct {
		name   string
		values map[string]any
	}{
		{"application", map[string]any{"gardener": map[string]any{"virtualCluster": map[string]any{"serviceAccount": account}}}},
		{"runtime", map[string]any{"image": map[string]any{"ref": a.image}}},
	} {
		files := os.DirFS(filepath.Join(a.root, "charts", "registry-cache-admission", chart.name))
		archive, err := helmchart.Archive(files, chart.name)
		if err == nil {
			err = do(archive, chart.values)
		}
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("chart %s: %w", chart.name, err))
		}
	}
	return failed
}

func admissionNamespace() *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: cachetest.AdmissionNamespace}}
}

func admissionDeployment() *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: cachetest.AdmissionNamespace, Name: admissionName}}
}

func admissionRegistration() *admissionregistrationv1.ValidatingWebhookConfiguration {
	return &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: admissionName}}
}

//go:embed testdata/shoots.yaml
var shootDefinition string

// installShootDefinition installs a CRD of Shoots, so that the cluster needs no gardener-apiserver
// (shoots.yaml explains what is missing), and returns when the API server serves Shoots.
func installShootDefinition(ctx context.Context, cluster client.Client) error {
	definition, err := crddeployer.New(cluster, []string{shootDefinition}, false)
	if err == nil {
		err = component.OpWait(definition).Deploy(ctx)
	}
	if err != nil {
		return fmt.Errorf("install the CRD of Shoots: %w", err)
	}
	return nil
}

// removeShootDefinition deletes the CRD with all Shoots, regardless of their finalizers, and
// returns when it is gone. A webhook that rejects changes to Shoots must be removed first.
func removeShootDefinition(ctx context.Context, cluster client.Client) error {
	definition, err := crddeployer.New(cluster, []string{shootDefinition}, false)
	if err == nil {
		err = removeFinalizersOfShoots(ctx, cluster)
	}
	if err == nil {
		err = component.OpWait(definition).Destroy(ctx)
	}
	if err != nil {
		return fmt.Errorf("remove the CRD of Shoots: %w", err)
	}
	return nil
}

// removeFinalizersOfShoots removes the finalizers of all Shoots. It does nothing if there is no
// CRD.
func removeFinalizersOfShoots(ctx context.Context, cluster client.Client) error {
	shoots := &metav1.PartialObjectMetadataList{}
	shoots.SetGroupVersionKind(gardencorev1beta1.SchemeGroupVersion.WithKind("ShootList"))
	err := cluster.List(ctx, shoots)
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list Shoots: %w", err)
	}
	for _, shoot := range shoots.Items {
		patch := client.RawPatch(client.Merge.Type(), []byte(`{"metadata":{"finalizers":null}}`))
		if err := cluster.Patch(ctx, &shoot, patch); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("remove the finalizers of Shoot %s: %w", client.ObjectKeyFromObject(&shoot), err)
		}
	}
	return nil
}
