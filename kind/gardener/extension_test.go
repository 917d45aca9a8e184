package gardener

import (
	"context"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	"github.com/gardener/gardener/pkg/chartrenderer"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	fakekubernetes "github.com/gardener/gardener/pkg/client/kubernetes/fake"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/version"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
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
		WithChartRenderer(chartrenderer.NewWithServerVersion(&version.Info{GitVersion: "v1.36.4"})).
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

// deployedManifest returns the content of a ManagedResource of class seed.
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

// TestExtensionObjects checks the kinds and the content of the objects, and that the name of the
// Secret changes if and only if the values change.
func TestExtensionObjects(t *testing.T) {
	extension := Extension{
		Name:         "sample",
		Registration: &gardencorev1beta1.ControllerRegistration{ObjectMeta: metav1.ObjectMeta{Name: "sample-registration"}},
		Chart:        chart,
		Values:       map[string]any{"image": map[string]any{"ref": "test/sample:1"}},
	}
	renderer := chartrenderer.NewWithServerVersion(&version.Info{GitVersion: "v1.36.4"})
	objects, err := extension.Objects(t.Context(), renderer)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := kindsOf(objects), "Namespace extension-sample, Secret , ManagedResource sample"; got != want {
		t.Errorf("objects %s, want %s", got, want)
	}
	seed := fake.NewClientBuilder().WithScheme(kubernetes.SeedScheme).Build()
	for _, object := range objects {
		if object.GetResourceVersion() != "" {
			t.Errorf("%s %s has a resourceVersion: it could not be applied over an existing one", object.GetKind(), object.GetName())
		}
		if err := seed.Create(t.Context(), object.DeepCopy()); err != nil {
			t.Fatal(err)
		}
	}
	manifest := deployedManifest(t, seed, client.ObjectKey{Namespace: GardenNamespace, Name: "sample"})
	for _, want := range []string{"image: test/sample:1", "namespace: extension-sample"} {
		if !strings.Contains(manifest, want) {
			t.Errorf("the release lacks %q:\n%s", want, manifest)
		}
	}

	again, err := extension.Objects(t.Context(), renderer)
	if err != nil || again[1].GetName() != objects[1].GetName() {
		t.Errorf("the same chart and values give another Secret: %v", err)
	}
	extension.Values = map[string]any{"image": map[string]any{"ref": "test/sample:2"}}
	other, err := extension.Objects(t.Context(), renderer)
	if err != nil || other[1].GetName() == objects[1].GetName() {
		t.Errorf("another image gives the same Secret, which would not be applied: %v", err)
	}
}

func kindsOf(objects []*unstructured.Unstructured) string {
	var kinds []string
	for _, object := range objects {
		name := object.GetName()
		if object.GetKind() == "Secret" {
			name = "" // a hash
		}
		kinds = append(kinds, object.GetKind()+" "+name)
	}
	return strings.Join(kinds, ", ")
}

// TestExtensionReconcile emulates the extension: at the first read of the resource it removes the
// annotation, and at the second read it writes the outcome to the status.
func TestExtensionReconcile(t *testing.T) {
	for name, test := range map[string]struct {
		outcome gardencorev1beta1.LastOperationState
		failure string
	}{
		"succeeds":     {outcome: gardencorev1beta1.LastOperationStateSucceeded},
		"never ends":   {outcome: gardencorev1beta1.LastOperationStateProcessing, failure: "not reconciled after 1m0s"},
		"is not there": {failure: "not yet picked up"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				before := metav1.NewTime(time.Now().Add(-time.Hour))
				mine, unrelated := extensionOf("mine", "sample", before), extensionOf("unrelated", "other", before)
				seed := fake.NewClientBuilder().WithScheme(kubernetes.SeedScheme).WithObjects(mine, unrelated).
					WithStatusSubresource(mine).WithInterceptorFuncs(interceptor.Funcs{Get: acting(test.outcome)}).Build()
				count, err := Extension{Name: "sample"}.Reconcile(t.Context(), seed)
				if count != 1 {
					t.Errorf("%d Extensions were reconciled, want the one of this type", count)
				}
				if (err == nil) != (test.failure == "") || err != nil && !strings.Contains(err.Error(), test.failure) {
					t.Errorf("error %v, want one that says %q", err, test.failure)
				}
				if err := seed.Get(t.Context(), client.ObjectKeyFromObject(unrelated), unrelated); err != nil {
					t.Fatal(err)
				}
				if len(unrelated.Annotations) > 0 {
					t.Errorf("the Extension of another type has the annotations %v", unrelated.Annotations)
				}
			})
		})
	}
}

func extensionOf(name, extensionType string, last metav1.Time) *extensionsv1alpha1.Extension {
	return &extensionsv1alpha1.Extension{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shoot", Name: name},
		Spec:       extensionsv1alpha1.ExtensionSpec{DefaultSpec: extensionsv1alpha1.DefaultSpec{Type: extensionType}},
		Status: extensionsv1alpha1.ExtensionStatus{DefaultStatus: extensionsv1alpha1.DefaultStatus{
			LastOperation: &gardencorev1beta1.LastOperation{State: gardencorev1beta1.LastOperationStateSucceeded, LastUpdateTime: last},
		}},
	}
}

// acting returns a Get function that reads and then acts as the extension, unless outcome is empty.
func acting(outcome gardencorev1beta1.LastOperationState) func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
	return func(ctx context.Context, seed client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
		if err := seed.Get(ctx, key, object, options...); err != nil {
			return err
		}
		extension, ok := object.(*extensionsv1alpha1.Extension)
		if !ok || outcome == "" {
			return nil
		}
		if _, asked := extension.Annotations[v1beta1constants.GardenerOperation]; asked {
			seen := extension.DeepCopy()
			delete(seen.Annotations, v1beta1constants.GardenerOperation)
			return seed.Update(ctx, seen)
		}
		done := extension.DeepCopy()
		done.Status.LastOperation.State, done.Status.LastOperation.LastUpdateTime = outcome, metav1.Now()
		return seed.Status().Update(ctx, done)
	}
}
