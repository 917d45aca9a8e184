package gardener

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	gardencorev1 "github.com/gardener/gardener/pkg/apis/core/v1"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"github.com/gardener/gardener/pkg/chartrenderer"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	fakekubernetes "github.com/gardener/gardener/pkg/client/kubernetes/fake"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

var offered = Extension{
	Name:         "sample",
	Registration: &gardencorev1beta1.ControllerRegistration{ObjectMeta: metav1.ObjectMeta{Name: "sample-registration"}},
	Chart:        chart,
	Values:       map[string]any{"image": map[string]any{"ref": "test/sample:1"}},
}

// TestOffer: Offer writes registration and deployment, and waits until installations of this
// extension, if there are any, refer to the deployment, and gardenlet has rendered it. Until then,
// the seed contains what an earlier deployment rendered. Offer changes no installation.
func TestOffer(t *testing.T) {
	installation := func(registration string, deleted bool) *gardencorev1beta1.ControllerInstallation {
		installation := &gardencorev1beta1.ControllerInstallation{ObjectMeta: metav1.ObjectMeta{Name: "sample-x5sjk", Finalizers: []string{"x"}}}
		if deleted {
			installation.DeletionTimestamp = &metav1.Time{Time: time.Now()}
		}
		installation.Spec.RegistrationRef.Name = registration
		installation.Spec.SeedRef = &corev1.ObjectReference{Name: SeedName}
		installation.Spec.DeploymentRef = &corev1.ObjectReference{Name: "sample", ResourceVersion: "old"}
		return installation
	}
	for name, tc := range map[string]struct {
		installations []client.Object
		follows       int // gardener-controller-manager updates the installation after as many looks
		renders       int // gardenlet renders it after as many looks
		want          string
	}{
		"not installed":        {nil, 0, 0, ""},
		"another extension":    {[]client.Object{installation("other", false)}, 0, 0, ""},
		"being deleted":        {[]client.Object{installation("sample-registration", true)}, 0, 0, ""},
		"updated":              {[]client.Object{installation("sample-registration", false)}, 3, 5, ""},
		"not updated in time":  {[]client.Object{installation("sample-registration", false)}, 0, 0, "sample-x5sjk refers to the last ControllerDeployment"},
		"not rendered in time": {[]client.Object{installation("sample-registration", false)}, 3, 0, "gardenlet has not yet rendered the update of ControllerInstallation sample-x5sjk"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // fake time
				// Shorter than the timeout of Offer, because each look renders a chart.
				ctx, cancel := context.WithTimeout(logf.IntoContext(t.Context(), logr.Discard()), 3*time.Second)
				defer cancel()
				looks := 0
				seed := fakekubernetes.NewClientSetBuilder().
					WithClient(fake.NewClientBuilder().WithScheme(kubernetes.SeedScheme).Build()).
					WithChartRenderer(chartrenderer.NewWithServerVersion(&version.Info{GitVersion: "v1.36.4"})).
					Build()
				renderIn := func(garden client.Client) {
					if err := render(ctx, garden, seed, "sample-x5sjk"); err != nil {
						t.Error(err)
					}
				}
				garden := fake.NewClientBuilder().WithScheme(kubernetes.GardenScheme).WithObjects(NewSeed()).WithObjects(tc.installations...).
					WithStatusSubresource(&gardencorev1beta1.ControllerInstallation{}).WithInterceptorFuncs(interceptor.Funcs{
					List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
						if looks++; looks == tc.follows {
							follow(ctx, t, c)
						}
						if looks == tc.renders {
							renderIn(c)
						}
						return c.List(ctx, list, options...)
					},
				}).Build()
				if tc.want != "" || tc.follows > 0 {
					earlier := offered
					earlier.Values = map[string]any{"image": map[string]any{"ref": "earlier"}}
					deployment, err := earlier.deployment()
					if err != nil {
						t.Fatal(err)
					}
					if err := apply(ctx, garden, earlier.Registration, deployment); err != nil {
						t.Fatal(err)
					}
					renderIn(garden)
				}
				err := offered.Offer(ctx, garden, seed)
				if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
					t.Errorf("error %v, want %q", err, tc.want)
				}
				if looks < max(tc.follows, tc.renders) {
					t.Errorf("returned after %d looks", looks)
				}
				checkOffered(t, garden)
			})
		})
	}
}

// checkOffered checks the objects that Offer writes.
func checkOffered(t *testing.T, garden client.Client) {
	t.Helper()
	registration, deployment := &gardencorev1beta1.ControllerRegistration{}, &gardencorev1.ControllerDeployment{}
	if err := garden.Get(t.Context(), client.ObjectKey{Name: "sample-registration"}, registration); err != nil {
		t.Fatal(err)
	}
	if err := garden.Get(t.Context(), client.ObjectKey{Name: registration.Spec.Deployment.DeploymentRefs[0].Name}, deployment); err != nil {
		t.Fatal(err)
	}
	if len(deployment.Helm.RawChart) == 0 || string(deployment.Helm.Values.Raw) != `{"image":{"ref":"test/sample:1"}}` {
		t.Errorf("chart with %d bytes, values %s", len(deployment.Helm.RawChart), deployment.Helm.Values.Raw)
	}
}

// TestCheckRendered: the check passes for what gardenlet has rendered, and writes neither to the
// garden nor to the seed.
func TestCheckRendered(t *testing.T) {
	refuse := errors.New("must not write")
	deployment, err := offered.deployment()
	if err != nil {
		t.Fatal(err)
	}
	installation := &gardencorev1beta1.ControllerInstallation{ObjectMeta: metav1.ObjectMeta{Name: "sample-x5sjk"}}
	installation.Spec.RegistrationRef.Name = offered.Registration.Name
	installation.Spec.SeedRef = &corev1.ObjectReference{Name: SeedName}
	installation.Spec.DeploymentRef = &corev1.ObjectReference{Name: deployment.Name}
	garden := NewGarden(NewSeed(), offered.Registration.DeepCopy(), deployment, installation)
	memory := fake.NewClientBuilder().WithScheme(kubernetes.SeedScheme).Build()
	renderer := chartrenderer.NewWithServerVersion(&version.Info{GitVersion: "v1.36.4"})
	seed := func(c client.Client) kubernetes.Interface {
		return fakekubernetes.NewClientSetBuilder().WithClient(c).WithChartRenderer(renderer).Build()
	}
	if err := checkRendered(t.Context(), garden, seed(memory), "sample-x5sjk"); !apierrors.IsNotFound(err) {
		t.Errorf("before gardenlet has rendered anything: error %v", err)
	}
	if err := garden.Get(t.Context(), client.ObjectKeyFromObject(installation), installation); err != nil || len(installation.Finalizers) > 0 {
		t.Errorf("the check wrote finalizers %v, error %v", installation.Finalizers, err)
	}
	if err := render(logf.IntoContext(t.Context(), logr.Discard()), garden, seed(memory), "sample-x5sjk"); err != nil {
		t.Fatal(err)
	}
	readOnly := interceptor.NewClient(memory, interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return refuse },
		Update: func(context.Context, client.WithWatch, client.Object, ...client.UpdateOption) error { return refuse },
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return refuse
		},
		Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error { return refuse },
	})
	if err := checkRendered(t.Context(), garden, seed(readOnly), "sample-x5sjk"); err != nil {
		t.Error(err)
	}
}

// follow updates the installation as gardener-controller-manager does.
func follow(ctx context.Context, t *testing.T, garden client.Client) {
	deployment, installation := &gardencorev1.ControllerDeployment{}, &gardencorev1beta1.ControllerInstallation{}
	err := garden.Get(ctx, client.ObjectKey{Name: "sample"}, deployment)
	if err == nil {
		err = garden.Get(ctx, client.ObjectKey{Name: "sample-x5sjk"}, installation)
	}
	if err == nil {
		installation.Spec.DeploymentRef.ResourceVersion = deployment.ResourceVersion
		err = garden.Update(ctx, installation)
	}
	if err != nil {
		t.Error(err)
	}
}

// TestInstalled: the generated name of the installation comes from the namespace, unless that is
// being deleted.
func TestInstalled(t *testing.T) {
	namespace := func(name, registration string, deleted bool) client.Object {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{v1beta1constants.LabelControllerRegistrationName: registration}, Finalizers: []string{"x"},
		}}
		if deleted {
			namespace.DeletionTimestamp = &metav1.Time{Time: time.Now()}
		}
		return namespace
	}
	for name, tc := range map[string]struct {
		namespaces []client.Object
		want       string
	}{
		"none":    {[]client.Object{namespace("extension-other-1", "other", false)}, ""},
		"deleted": {[]client.Object{namespace("extension-sample-1", "sample-registration", true)}, ""},
		"again": {[]client.Object{
			namespace("extension-sample-1", "sample-registration", true), namespace("extension-sample-2", "sample-registration", false),
		}, "extension-sample-2"},
	} {
		t.Run(name, func(t *testing.T) {
			seed := fake.NewClientBuilder().WithScheme(kubernetes.SeedScheme).WithObjects(tc.namespaces...).Build()
			installed, err := offered.Installed(t.Context(), seed)
			if err != nil || (installed == nil) != (tc.want == "") || installed != nil && installed.Namespace() != tc.want {
				t.Errorf("installed as %+v, error %v, want %q", installed, err, tc.want)
			}
		})
	}
	if got := offered.Namespace(); got != "extension-sample" {
		t.Errorf("without a garden: %s", got)
	}
}
