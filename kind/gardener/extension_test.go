package gardener

import (
	"strings"
	"testing"
	"testing/fstest"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	"github.com/gardener/gardener/pkg/chartrenderer"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	fakekubernetes "github.com/gardener/gardener/pkg/client/kubernetes/fake"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

var chart = fstest.MapFS{
	"Chart.yaml":  {Data: []byte("apiVersion: v2\nname: sample\nversion: 1.0.0\n")},
	"values.yaml": {Data: []byte("image: {ref: none}\n")},
	"templates/deployment.yaml": {Data: []byte(`apiVersion: apps/v1
kind: Deployment
metadata: {name: sample, namespace: {{ .Release.Namespace }}, annotations: {gardener: "{{ .Values.gardener.version }} {{ .Values.gardener.seed.name }}"}}
spec: {selector: {matchLabels: {app: x}}, template: {metadata: {labels: {app: x}}, spec: {containers: [{name: x, image: "{{ .Values.image.ref }}"}]}}}
`)},
}

// TestExtensionDeploy runs gardenlet's reconciler on in-memory clusters.
func TestExtensionDeploy(t *testing.T) {
	seed := fakekubernetes.NewClientSetBuilder().
		WithClient(fake.NewClientBuilder().WithScheme(kubernetes.SeedScheme).Build()).
		WithChartRenderer(chartrenderer.NewWithServerVersion(&version.Info{GitVersion: "v1.36.2"})).
		Build()
	extension := Extension{
		Name: "sample",
		Registration: &gardencorev1beta1.ControllerRegistration{ObjectMeta: metav1.ObjectMeta{
			Name: "sample-registration", Annotations: map[string]string{"security.gardener.cloud/pod-security-enforce": "restricted"},
		}},
		Chart:  chart,
		Values: map[string]any{"image": map[string]any{"ref": "test/sample:1"}},
	}
	for range 2 {
		if err := extension.Deploy(t.Context(), seed); err != nil {
			t.Fatal(err)
		}
	}

	namespace := &corev1.Namespace{}
	if err := seed.Client().Get(t.Context(), client.ObjectKey{Name: extension.Namespace()}, namespace); err != nil {
		t.Fatal(err)
	}
	for label, want := range map[string]string{
		"gardener.cloud/role":                             "extension",
		"controllerregistration.core.gardener.cloud/name": "sample-registration",
		"pod-security.kubernetes.io/enforce":              "restricted",
	} {
		if got := namespace.Labels[label]; got != want {
			t.Errorf("label %s of the namespace is %q, want %q", label, got, want)
		}
	}

	manifest := deployedManifest(t, seed.Client(), client.ObjectKey{Namespace: GardenNamespace, Name: "sample"})
	for _, want := range []string{"image: test/sample:1", "namespace: extension-sample", Version + " " + SeedName, "name: SEED_NAME"} {
		if !strings.Contains(manifest, want) {
			t.Errorf("the release lacks %q:\n%s", want, manifest)
		}
	}
}

// deployedManifest returns what a ManagedResource of class seed brings into the seed.
func deployedManifest(t *testing.T, seed client.Client, key client.ObjectKey) string {
	t.Helper()
	resource := &resourcesv1alpha1.ManagedResource{}
	if err := seed.Get(t.Context(), key, resource); err != nil {
		t.Fatal(err)
	}
	if resource.Spec.Class == nil || *resource.Spec.Class != "seed" {
		t.Errorf("the class is %v, want seed", resource.Spec.Class)
	}
	var manifest strings.Builder
	for _, reference := range resource.Spec.SecretRefs {
		secret := &corev1.Secret{}
		if err := seed.Get(t.Context(), client.ObjectKey{Namespace: key.Namespace, Name: reference.Name}, secret); err != nil {
			t.Fatal(err)
		}
		for _, data := range secret.Data {
			manifest.Write(data)
		}
	}
	return manifest.String()
}
