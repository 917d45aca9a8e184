package landscape

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/gardener/gardener/pkg/chartrenderer"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/apimachinery/pkg/version"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/charts"
	"github.com/gardener-extensions/registry-cache/kind/gardener"
)

// ExtensionNamespace is where the extension would run on the seed.
const ExtensionNamespace = "extension-" + ExtensionName

// User is the service account of the extension.
const User = "system:serviceaccount:" + ExtensionNamespace + ":gardener-extension-" + ExtensionName

// Prepare installs Gardener's CRDs and the RBAC objects of the extension's chart into the seed. It
// returns the arguments of the extension's container in the chart.
func Prepare(ctx context.Context, seed client.Client) (arguments []string, err error) {
	if err := gardener.InstallCRDs(ctx, seed); err != nil {
		return nil, err
	}
	if err := seed.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ExtensionNamespace}}); err != nil {
		return nil, fmt.Errorf("creating the namespace of the extension: %w", err)
	}
	objects, err := chart()
	if err != nil {
		return nil, err
	}
	for _, object := range objects {
		switch object := object.(type) {
		case *rbacv1.ClusterRole, *rbacv1.ClusterRoleBinding, *rbacv1.Role, *rbacv1.RoleBinding:
			if err := seed.Create(ctx, object); err != nil {
				return nil, fmt.Errorf("creating %T %s: %w", object, client.ObjectKeyFromObject(object), err)
			}
		case *appsv1.Deployment:
			arguments = object.Spec.Template.Spec.Containers[0].Args
		}
	}
	return arguments, nil
}

// chart renders the chart of the extension as gardenlet does.
func chart() ([]client.Object, error) {
	archive, err := charts.Archive(charts.Extension(), ExtensionName)
	if err != nil {
		return nil, err
	}
	renderer := chartrenderer.NewWithServerVersion(&version.Info{GitVersion: "v" + kubernetesMinor + ".0"})
	release, err := renderer.RenderArchive(archive, ExtensionName, ExtensionNamespace, map[string]any{
		"image":    map[string]any{"ref": "registry.test/registry-cache-extension:bench"},
		"gardener": map[string]any{"version": gardener.Version},
	})
	if err != nil {
		return nil, fmt.Errorf("rendering the chart of the extension: %w", err)
	}
	return decode(release.Manifest())
}

// decode decodes the objects of a manifest. It skips kinds that are not in the scheme: the seed has
// no CRDs for them.
func decode(manifest []byte) ([]client.Object, error) {
	decoder := serializer.NewCodecFactory(kubernetes.SeedScheme).UniversalDeserializer()
	documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(manifest)))
	var objects []client.Object
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading the rendered chart: %w", err)
		}
		object, _, err := decoder.Decode(document, nil, nil)
		if runtime.IsNotRegisteredError(err) || runtime.IsMissingKind(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("decoding the rendered chart: %w", err)
		}
		if object, ok := object.(client.Object); ok {
			objects = append(objects, object)
		}
	}
}
