//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gardener/gardener/pkg/client/kubernetes"
	kubernetesutils "github.com/gardener/gardener/pkg/utils/kubernetes"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/cachetest"
	"github.com/gardener-extensions/registry-cache/internal/helmchart"
	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/gardener"
	"github.com/gardener-extensions/registry-cache/kind/image"
	"github.com/gardener-extensions/registry-cache/kind/progress"
)

// admissionName is the name of the admission's objects, and of the namespace of its certificates.
const admissionName = "gardener-extension-registry-cache-admission"

// installAdmission installs the admission from its charts, as in a landscape in which the garden
// and its runtime cluster are two: the pods reach the garden with a kubeconfig, and
// gardener-apiserver, which runs in the runtime cluster, calls them by URL. Here, the seed is both,
// so each cluster is a namespace with a ServiceAccount of its own.
//
// It waits until the pods are ready and the webhook is registered; the API server may start to call
// the webhook a little later.
func installAdmission(ctx context.Context, t *kind.Testbed) error {
	cluster, err := gardener.NewSeedClient(t.Seed.RESTConfig())
	if err != nil {
		return err
	}
	built, err := t.Build(ctx, image.Binary{Name: "registry-cache-admission", Package: kind.ModulePath + "/cmd/registry-cache-admission"})
	if err != nil {
		return err
	}
	var kubeconfig []byte
	return progress.InOrder(ctx,
		func(ctx context.Context) error { return image.Load(ctx, t.Seed.Nodes(), built) },
		func(ctx context.Context) error { return applicationChart().apply(ctx, t, cluster) },
		func(ctx context.Context) (err error) {
			kubeconfig, err = admissionKubeconfig(ctx, t, cluster.Client())
			return err
		},
		func(ctx context.Context) error { return runtimeChart(built[0].Ref, kubeconfig).apply(ctx, t, cluster) },
		func(ctx context.Context) error {
			return gardener.WaitForDeployment(ctx, cluster.Client(), client.ObjectKeyFromObject(admissionDeployment()))
		},
		func(ctx context.Context) error {
			return gardener.WaitForRegistration(ctx, cluster.Client(), admissionRegistration())
		},
	)
}

// admissionKubeconfig returns a kubeconfig for the garden with the permissions of the application
// chart. Its token expires after an hour.
func admissionKubeconfig(ctx context.Context, t *kind.Testbed, garden client.Client) ([]byte, error) {
	token, err := tokenOf(ctx, garden, cachetest.AdmissionNamespace, admissionName)
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.Load(t.Seed.InternalKubeconfig())
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig of the seed: %w", err)
	}
	for user := range config.AuthInfos {
		config.AuthInfos[user] = &clientcmdapi.AuthInfo{Token: token}
	}
	return clientcmd.Write(*config)
}

// removeAdmission deletes everything that installAdmission and the pods created, and waits up to
// two minutes until it is gone. Missing objects are not an error.
func removeAdmission(ctx context.Context, t *kind.Testbed) error {
	cluster, err := gardener.NewSeedClient(t.Seed.RESTConfig())
	if err != nil {
		return err
	}
	ctx, cancel := progress.Within(ctx, 2*time.Minute, "not done")
	defer cancel()
	// Delete the webhook first, or the API server would call a webhook without pods. Delete the RBAC
	// objects after the pods. Which image and kubeconfig the charts name does not matter.
	failed := errors.Join(removeAndWait(ctx, cluster.Client(), admissionRegistration()), removeAndWait(ctx, cluster.Client(), admissionDeployment()),
		runtimeChart("none", []byte("none")).remove(ctx, t, cluster), applicationChart().remove(ctx, t, cluster))
	for _, namespace := range []string{cachetest.AdmissionNamespace, cachetest.AdmissionRuntimeNamespace, admissionName} {
		failed = errors.Join(failed, removeAndWait(ctx, cluster.Client(), namespaceObject(namespace)))
	}
	if failed != nil {
		return fmt.Errorf("remove %s: %w", admissionName, failed)
	}
	return nil
}

// removeAndWait deletes an object and its dependents, and waits until it is gone.
func removeAndWait(ctx context.Context, cluster client.Client, object client.Object) error {
	if err := cluster.Delete(ctx, object, client.PropagationPolicy(metav1.DeletePropagationForeground)); err != nil {
		return client.IgnoreNotFound(err)
	}
	return kubernetesutils.WaitUntilResourceDeleted(ctx, cluster, object, 200*time.Millisecond)
}

// admissionChart is a chart of the admission, its namespace and its values.
type admissionChart struct {
	name, namespace string
	values          map[string]any
}

// applicationChart returns the chart for the garden. It creates the ServiceAccount of the webhook.
func applicationChart() admissionChart {
	return admissionChart{"application", cachetest.AdmissionNamespace, map[string]any{}}
}

// runtimeChart returns the chart for the runtime cluster.
func runtimeChart(image string, kubeconfig []byte) admissionChart {
	return admissionChart{"runtime", cachetest.AdmissionRuntimeNamespace, map[string]any{
		"image":      map[string]any{"ref": image},
		"kubeconfig": string(kubeconfig),
		"gardener":   map[string]any{"virtualCluster": map[string]any{"enabled": true, "namespace": cachetest.AdmissionNamespace}},
	}}
}

func (c admissionChart) apply(ctx context.Context, t *kind.Testbed, cluster kubernetes.Interface) error {
	archive, err := c.archive(t)
	if err == nil {
		err = client.IgnoreAlreadyExists(cluster.Client().Create(ctx, namespaceObject(c.namespace)))
	}
	if err == nil {
		err = cluster.ChartApplier().ApplyFromArchive(ctx, archive, c.namespace, admissionName, kubernetes.Values(c.values))
	}
	if err != nil {
		return fmt.Errorf("deploy the chart %s of %s: %w", c.name, admissionName, err)
	}
	return nil
}

func (c admissionChart) remove(ctx context.Context, t *kind.Testbed, cluster kubernetes.Interface) error {
	archive, err := c.archive(t)
	if err == nil {
		err = cluster.ChartApplier().DeleteFromArchive(ctx, archive, c.namespace, admissionName, kubernetes.Values(c.values))
	}
	if err != nil {
		return fmt.Errorf("remove the chart %s: %w", c.name, err)
	}
	return nil
}

func (c admissionChart) archive(t *kind.Testbed) ([]byte, error) {
	return helmchart.Archive(os.DirFS(filepath.Join(t.Root, "charts", "registry-cache-admission", c.name)), c.name)
}

func namespaceObject(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func admissionDeployment() *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: cachetest.AdmissionRuntimeNamespace, Name: admissionName}}
}

func admissionRegistration() *admissionregistrationv1.ValidatingWebhookConfiguration {
	return &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: admissionName}}
}
