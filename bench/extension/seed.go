package extension

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"github.com/gardener/gardener/pkg/chartrenderer"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/bench"
	"github.com/gardener-extensions/registry-cache/charts"
	"github.com/gardener-extensions/registry-cache/internal/helmchart"
	"github.com/gardener-extensions/registry-cache/kind/gardener"
)

// Namespace is the namespace in which the extension would run on a real seed.
const Namespace = "extension-" + Name

// User is the user name of the extension's service account.
const User = "system:serviceaccount:" + Namespace + ":gardener-extension-" + Name

// Groups are the groups of that user.
var Groups = []string{"system:serviceaccounts", "system:serviceaccounts:" + Namespace}

// Prepare installs Gardener's CRDs and the RBAC objects of the extension's chart into the seed, and
// returns the arguments of the extension's container in the chart.
func Prepare(ctx context.Context, seed client.Client) (arguments []string, err error) {
	if err := gardener.InstallCRDs(ctx, seed); err != nil {
		return nil, err
	}
	if err := seed.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: Namespace}}); err != nil {
		return nil, fmt.Errorf("create the namespace of the extension: %w", err)
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
			return nil, fmt.Errorf("install %s %s of the chart: %w", object.GetKind(), client.ObjectKeyFromObject(object), err)
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
		return nil, fmt.Errorf("render the chart of the extension: %w", err)
	}
	manifests := kubernetes.NewManifestReader(release.Manifest())
	for {
		object, err := manifests.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read the rendered chart: %w", err)
		}
		objects = append(objects, object)
	}
}

// starts bounds how often Start starts a process that exits.
const starts = 3

// Start starts the binary with the arguments of the chart, and returns when the extension is ready.
// It overrides the arguments that work only in a pod. The folder is for the extension's log and
// files. The caller must call Stop. As a kubelet does, Start restarts a process that exits:
// Gardener's library (v1.150.0) may write the webhook's certificate again while the webhook server
// reads it, so that the extension exits (extensions/pkg/webhook/certificates/reloader.go).
func Start(ctx context.Context, binary, folder string, kubeconfig []byte, arguments []string) (process *bench.Process, err error) {
	file := filepath.Join(folder, "kubeconfig")
	if err := os.WriteFile(file, kubeconfig, 0o600); err != nil {
		return nil, fmt.Errorf("write the kubeconfig of the extension: %w", err)
	}
	for range starts {
		ports, portsErr := bench.FreePorts(3)
		if portsErr != nil {
			return nil, portsErr
		}
		process, err = bench.Program{
			Name: "extension", Path: binary, Folder: folder, Ready: "http://127.0.0.1:" + ports[0] + "/readyz",
			Arguments:   append(overriding(arguments, folder, ports), "--kubeconfig="+file),
			Environment: []string{"LEADER_ELECTION_NAMESPACE=" + Namespace, "WEBHOOK_CONFIG_NAMESPACE=" + Namespace},
		}.Start(ctx)
		if exit := new(exec.ExitError); !errors.As(err, &exit) {
			return process, err
		}
	}
	return nil, err
}

// overriding returns the arguments, followed by others that override some of them. If a flag occurs
// twice, its last value is used.
func overriding(arguments []string, folder string, ports []string) []string {
	return append(slices.Clone(arguments),
		"--health-bind-address=127.0.0.1:"+ports[0],
		"--metrics-bind-address=127.0.0.1:"+ports[1],
		"--webhook-config-mode=url",
		"--webhook-config-url=127.0.0.1:"+ports[2],
		"--webhook-config-server-host=127.0.0.1",
		"--webhook-config-server-port="+ports[2],
		"--webhook-config-cert-dir="+filepath.Join(folder, "certificates"),
	)
}

// createShoots creates the objects that an Extension needs: namespace, Cluster and kubeconfig,
// which gives access to the one API server that serves all shoots.
func (r *measurement) createShoots(ctx context.Context) error {
	return forEach(ctx, r.result.Shoots, func(ctx context.Context, i int) error {
		kubeconfig, err := kubeconfigOf(i, r.kubeconfig, "")
		if err != nil {
			return err
		}
		for _, object := range []client.Object{shootNamespace(i), cluster(i), kubeconfigSecret(i, kubeconfig)} {
			if err := r.seedClient.Create(ctx, object); err != nil {
				return fmt.Errorf("create %T of shoot %d: %w", object, i, err)
			}
		}
		return nil
	})
}

// createExtensions creates the Extensions of all shoots.
func (r *measurement) createExtensions(ctx context.Context) error {
	return forEach(ctx, r.result.Shoots, func(ctx context.Context, i int) error { return r.seedClient.Create(ctx, extension(i)) })
}

// reconcile annotates the Extensions of shoots 0 to shoots-1 for reconciliation, as gardenlet does.
func (r *measurement) reconcile(ctx context.Context, shoots int) error {
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`,
		v1beta1constants.GardenerOperation, v1beta1constants.GardenerOperationReconcile)
	return forEach(ctx, shoots, func(ctx context.Context, i int) error {
		return r.seedClient.Patch(ctx, extension(i), client.RawPatch(types.MergePatchType, []byte(patch)))
	})
}

// pointTo makes the kubeconfig of the i-th shoot point to the address.
func (r *measurement) pointTo(ctx context.Context, i int, address string) error {
	kubeconfig, err := kubeconfigOf(i, r.kubeconfig, "https://"+address)
	if err == nil {
		err = r.seedClient.Update(ctx, kubeconfigSecret(i, kubeconfig))
	}
	if err != nil {
		return fmt.Errorf("point shoot %d to %s: %w", i, address, err)
	}
	return nil
}

// kubeconfigOf returns the kubeconfig of the i-th shoot, with the given server unless that is
// empty. A unique comment before the CA bundle makes client-go open one connection per shoot, as if
// each shoot had its own API server.
func kubeconfigOf(i int, kubeconfig []byte, server string) ([]byte, error) {
	config, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig of the shoots: %w", err)
	}
	for _, cluster := range config.Clusters {
		cluster.Server = cmp.Or(server, cluster.Server)
		cluster.CertificateAuthorityData = append([]byte(namespaceOf(i)+"\n"), cluster.CertificateAuthorityData...)
	}
	return clientcmd.Write(*config)
}

// writers bounds how many objects are written concurrently.
const writers = 16

// forEach calls do for the indices 0 to shoots-1 concurrently, and returns the first error.
func forEach(ctx context.Context, shoots int, do func(ctx context.Context, i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for i := range shoots {
		group.Go(func() error { return do(ctx, i) })
	}
	return group.Wait()
}
