package gardener

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"

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

	"github.com/gardener-extensions/registry-cache/internal/helmchart"
	"github.com/gardener-extensions/registry-cache/kind/progress"
)

// Admission is an extension's admission component, for a garden without gardener-operator. Both of
// its charts are installed into one namespace of the garden's cluster. The pods run there too.
type Admission struct {
	// Name of the Helm release, Deployment, ServiceAccount and ValidatingWebhookConfiguration.
	Name      string
	Namespace string // belongs to the component: Deploy creates it, Remove deletes it
	// Application and Runtime are the directories of the Helm charts. The runtime chart uses Image.
	Application, Runtime fs.FS
	Image                string
}

// Deploy renders and applies the application chart (RBAC), then the runtime chart.
func (a Admission) Deploy(ctx context.Context, garden kubernetes.Interface) error {
	err := apply(ctx, garden.Client(), a.namespace())
	if err == nil {
		ok := true // the runtime chart needs the RBAC objects
		err = a.eachChart(func(archive []byte, values any) (err error) {
			if ok {
				err = garden.ChartApplier().ApplyFromArchive(ctx, archive, a.Namespace, a.Name, kubernetes.Values(values))
				ok = err == nil
			}
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("deploy %s: %w", a.Name, err)
	}
	return nil
}

// Wait waits up to three minutes until the pods are ready and the webhook has a CA bundle.
func (a Admission) Wait(ctx context.Context, garden client.Reader) error {
	if err := waitForDeployment(ctx, garden, client.ObjectKeyFromObject(a.deployment())); err != nil {
		return err
	}
	return waitForRegistration(ctx, garden, a.registration())
}

// Remove deletes everything that Deploy and the pods created, and waits up to two minutes until it
// is gone. Missing objects are no error.
func (a Admission) Remove(ctx context.Context, garden kubernetes.Interface) error {
	ctx, cancel := progress.Within(ctx, rolloutTimeout, "not done")
	defer cancel()
	// Delete the webhook first, or the API server would call a webhook without pods. Delete the RBAC
	// objects after the pods.
	failed := errors.Join(remove(ctx, garden.Client(), a.registration()), remove(ctx, garden.Client(), a.deployment()),
		a.eachChart(func(archive []byte, values any) error {
			return garden.ChartApplier().DeleteFromArchive(ctx, archive, a.Namespace, a.Name, kubernetes.Values(values))
		}), remove(ctx, garden.Client(), a.namespace()))
	if failed != nil {
		return fmt.Errorf("remove %s: %w", a.Name, failed)
	}
	return nil
}

// remove deletes an object and its dependents, and waits until it is gone.
func remove(ctx context.Context, garden client.Client, object client.Object) error {
	if err := garden.Delete(ctx, object, client.PropagationPolicy(metav1.DeletePropagationForeground)); err != nil {
		return client.IgnoreNotFound(err)
	}
	return kubernetesutils.WaitUntilResourceDeleted(ctx, garden, object, pollInterval)
}

// eachChart calls function do with the archive and values of each chart, even after an error.
func (a Admission) eachChart(do func(archive []byte, values any) error) (failed error) {
	account := map[string]any{"name": a.Name, "namespace": a.Namespace}
	for _, chart := range []struct {
		name   string
		files  fs.FS
		values map[string]any
	}{
		{"application", a.Application, map[string]any{
			"gardener": map[string]any{"virtualCluster": map[string]any{"serviceAccount": account}},
		}},
		{"runtime", a.Runtime, map[string]any{"image": map[string]any{"ref": a.Image}}},
	} {
		archive, err := helmchart.Archive(chart.files, chart.name)
		if err == nil {
			err = do(archive, chart.values)
		}
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("chart %s: %w", chart.name, err))
		}
	}
	return failed
}

func (a Admission) namespace() *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: a.Namespace}}
}

func (a Admission) deployment() *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: a.Name}}
}

func (a Admission) registration() *admissionregistrationv1.ValidatingWebhookConfiguration {
	return &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: a.Name}}
}

//go:embed shoots.yaml
var shootDefinition string

// InstallShootDefinition installs a CRD of Shoots, so that the cluster needs no gardener-apiserver
// (shoots.yaml says what is missing), and returns when the API server serves Shoots.
func InstallShootDefinition(ctx context.Context, cluster client.Client) error {
	definition, err := crddeployer.New(cluster, []string{shootDefinition}, false)
	if err == nil {
		err = component.OpWait(definition).Deploy(ctx)
	}
	if err != nil {
		return fmt.Errorf("install the CRD of Shoots: %w", err)
	}
	return nil
}

// RemoveShootDefinition deletes the CRD with all Shoots, regardless of their finalizers, and
// returns when it is gone. A webhook that rejects changes of Shoots must be removed first.
func RemoveShootDefinition(ctx context.Context, cluster client.Client) error {
	definition, err := crddeployer.New(cluster, []string{shootDefinition}, false)
	if err == nil {
		err = removeFinalizers(ctx, cluster)
	}
	if err == nil {
		err = component.OpWait(definition).Destroy(ctx)
	}
	if err != nil {
		return fmt.Errorf("remove the CRD of Shoots: %w", err)
	}
	return nil
}

// removeFinalizers removes the finalizers of all Shoots. It does nothing if there is no CRD.
func removeFinalizers(ctx context.Context, cluster client.Client) error {
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
