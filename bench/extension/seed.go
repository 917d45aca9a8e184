package extension

import (
	"context"
	"errors"
	"fmt"
	"io"

	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"github.com/gardener/gardener/pkg/chartrenderer"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/charts"
	"github.com/gardener-extensions/registry-cache/internal/helmchart"
	"github.com/gardener-extensions/registry-cache/kind/gardener"
)

// Namespace is the namespace in which the extension would run on a real seed.
const Namespace = "extension-" + Name

// User is the user name of the extension's service account.
const User = "system:serviceaccount:" + Namespace + ":gardener-extension-" + Name

// Prepare installs Gardener's CRDs and the RBAC objects of the extension's chart into the seed, and
// returns the arguments of the extension's container in the chart.
func Prepare(ctx context.Context, seed client.Client) (arguments []string, err error) {
	if err := gardener.InstallCRDs(ctx, seed); err != nil {
		return nil, err
	}
	if err := seed.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: Namespace}}); err != nil {
		return nil, fmt.Errorf("creating the namespace of the extension: %w", err)
	}
	objects, err := chart()
	if err != nil {
		return nil, err
	}
	deployment := &appsv1.Deployment{}
	for _, object := range objects {
		switch object.GetKind() {
		case "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding":
			err = seed.Create(ctx, object)
		case "Deployment":
			err = runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, deployment)
		}
		if err != nil {
			return nil, fmt.Errorf("installing %s %s of the chart: %w", object.GetKind(), client.ObjectKeyFromObject(object), err)
		}
	}
	if len(deployment.Spec.Template.Spec.Containers) == 0 {
		return nil, fmt.Errorf("chart %s has no Deployment with a container: check the folder charts", Name)
	}
	return deployment.Spec.Template.Spec.Containers[0].Args, nil
}

func chart() (objects []*unstructured.Unstructured, err error) {
	archive, err := helmchart.Archive(charts.Extension(), Name)
	if err != nil {
		return nil, err
	}
	renderer := chartrenderer.NewWithServerVersion(&version.Info{GitVersion: "v" + kubernetesMinor + ".0"})
	release, err := renderer.RenderArchive(archive, Name, Namespace, map[string]any{
		"image":    map[string]any{"ref": "registry.test/registry-cache-extension:bench"},
		"gardener": map[string]any{"version": gardener.Version},
	})
	if err != nil {
		return nil, fmt.Errorf("rendering the chart of the extension: %w", err)
	}
	manifests := kubernetes.NewManifestReader(release.Manifest())
	for {
		object, err := manifests.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading the rendered chart: %w", err)
		}
		objects = append(objects, object)
	}
}

// writers is the number of objects that are written concurrently.
const writers = 16

// Landscape is a seed with shoots.
type Landscape struct {
	seed   client.Client
	shoots int
	// kubeconfig gives access to the one API server that serves all shoots.
	kubeconfig []byte
}

// newLandscape returns a Landscape on a seed that Prepare has set up. The client must not read from
// informers. kubeconfig gives access to the API server that serves all shoots.
func newLandscape(seed client.Client, shoots int, kubeconfig []byte) *Landscape {
	return &Landscape{seed: seed, shoots: shoots, kubeconfig: kubeconfig}
}

// CreateShoots creates the objects that an Extension needs: namespace, Cluster and kubeconfigs.
func (l *Landscape) CreateShoots(ctx context.Context) error {
	return forEach(ctx, l.shoots, func(ctx context.Context, i int) error {
		cluster, err := cluster(i)
		if err != nil {
			return err
		}
		kubeconfig, err := l.kubeconfigOf(i)
		if err != nil {
			return err
		}
		for _, object := range append([]client.Object{shootNamespace(i), cluster}, kubeconfigSecrets(i, kubeconfig)...) {
			if err := l.seed.Create(ctx, object); err != nil {
				return fmt.Errorf("creating %T of shoot %d: %w", object, i, err)
			}
		}
		return nil
	})
}

// CreateExtensions creates the Extensions of all shoots.
func (l *Landscape) CreateExtensions(ctx context.Context) error {
	return forEach(ctx, l.shoots, func(ctx context.Context, i int) error { return l.seed.Create(ctx, extension(i)) })
}

// CreateOperatingSystemConfigs creates an OperatingSystemConfig for each shoot. It returns an error
// if the webhook does not add its unit to an OperatingSystemConfig.
func (l *Landscape) CreateOperatingSystemConfigs(ctx context.Context) error {
	return forEach(ctx, l.shoots, func(ctx context.Context, i int) error {
		config, err := operatingSystemConfig(i)
		if err != nil {
			return err
		}
		units := len(config.Spec.Units)
		if err := l.seed.Create(ctx, config); err != nil {
			return err
		}
		if len(config.Spec.Units) == units {
			return fmt.Errorf("the webhook added no unit to OperatingSystemConfig %s", client.ObjectKeyFromObject(config))
		}
		return nil
	})
}

// Reconcile annotates the Extensions of the first N shoots for reconciliation, as gardenlet does.
func (l *Landscape) Reconcile(ctx context.Context, shoots int) error {
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`,
		v1beta1constants.GardenerOperation, v1beta1constants.GardenerOperationReconcile)
	return forEach(ctx, shoots, func(ctx context.Context, i int) error {
		return l.seed.Patch(ctx, extension(i), client.RawPatch("application/merge-patch+json", []byte(patch)))
	})
}

// Break makes the kubeconfigs of the i-th shoot point to the address.
func (l *Landscape) Break(ctx context.Context, i int, address string) error {
	kubeconfig, err := l.kubeconfigWith(func(cluster *clientcmdapi.Cluster) { cluster.Server = "https://" + address })
	if err != nil {
		return fmt.Errorf("pointing shoot %d to %s: %w", i, address, err)
	}
	for _, secret := range kubeconfigSecrets(i, kubeconfig) {
		if err := l.seed.Update(ctx, secret); err != nil {
			return fmt.Errorf("pointing shoot %d to %s: %w", i, address, err)
		}
	}
	return nil
}

// kubeconfigOf returns the kubeconfig of the i-th shoot. A unique comment before the CA bundle
// makes client-go open one connection per shoot, as if each shoot had its own API server.
func (l *Landscape) kubeconfigOf(i int) ([]byte, error) {
	return l.kubeconfigWith(func(cluster *clientcmdapi.Cluster) {
		cluster.CertificateAuthorityData = append([]byte(namespaceOf(i)+"\n"), cluster.CertificateAuthorityData...)
	})
}

// kubeconfigWith returns the shoots' kubeconfig, with a cluster entry that change has edited.
func (l *Landscape) kubeconfigWith(change func(*clientcmdapi.Cluster)) ([]byte, error) {
	config, err := clientcmd.Load(l.kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig of the shoots: %w", err)
	}
	for _, cluster := range config.Clusters {
		change(cluster)
	}
	return clientcmd.Write(*config)
}

// forEach calls do for the indices 0 to shoots-1 concurrently, and returns the first error.
func forEach(ctx context.Context, shoots int, do func(ctx context.Context, i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for i := range shoots {
		group.Go(func() error {
			if err := context.Cause(ctx); err != nil {
				return err
			}
			return do(ctx, i)
		})
	}
	return group.Wait()
}
