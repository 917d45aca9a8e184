package gardener

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	gardencorev1 "github.com/gardener/gardener/pkg/apis/core/v1"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

var offered = Extension{
	Name:         "sample",
	Registration: &gardencorev1beta1.ControllerRegistration{ObjectMeta: metav1.ObjectMeta{Name: "sample-registration"}},
	Chart:        chart,
	Values:       map[string]any{"a": "b"},
}

// TestOffer: Offer writes registration and deployment, and waits until installations of this
// extension, if there are any, refer to the deployment.
func TestOffer(t *testing.T) {
	installation := func(registration string, deleted bool) *gardencorev1beta1.ControllerInstallation {
		installation := &gardencorev1beta1.ControllerInstallation{ObjectMeta: metav1.ObjectMeta{Name: "sample-x5sjk", Finalizers: []string{"x"}}}
		if deleted {
			installation.DeletionTimestamp = &metav1.Time{Time: time.Now()}
		}
		installation.Spec.RegistrationRef.Name = registration
		installation.Spec.DeploymentRef = &corev1.ObjectReference{Name: "sample", ResourceVersion: "old"}
		return installation
	}
	for name, tc := range map[string]struct {
		installations []client.Object
		follows       int // gardener-controller-manager updates the installation after as many looks
		want          string
	}{
		"not installed":       {nil, 0, ""},
		"another extension":   {[]client.Object{installation("other", false)}, 0, ""},
		"being deleted":       {[]client.Object{installation("sample-registration", true)}, 0, ""},
		"updated":             {[]client.Object{installation("sample-registration", false)}, 3, ""},
		"not updated in time": {[]client.Object{installation("sample-registration", false)}, 0, "sample-x5sjk refers to the last ControllerDeployment"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // fake time
				looks := 0
				garden := fake.NewClientBuilder().WithScheme(kubernetes.GardenScheme).WithObjects(tc.installations...).WithInterceptorFuncs(interceptor.Funcs{
					List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
						if looks++; looks == tc.follows {
							follow(t, c)
						}
						return c.List(ctx, list, options...)
					},
				}).Build()
				err := offered.Offer(t.Context(), garden)
				if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
					t.Errorf("error %v, want %q", err, tc.want)
				}
				if looks < tc.follows {
					t.Errorf("returned after %d looks", looks)
				}
				registration, deployment := &gardencorev1beta1.ControllerRegistration{}, &gardencorev1.ControllerDeployment{}
				if err := garden.Get(t.Context(), client.ObjectKey{Name: "sample-registration"}, registration); err != nil {
					t.Fatal(err)
				}
				if err := garden.Get(t.Context(), client.ObjectKey{Name: registration.Spec.Deployment.DeploymentRefs[0].Name}, deployment); err != nil {
					t.Fatal(err)
				}
				if len(deployment.Helm.RawChart) == 0 || string(deployment.Helm.Values.Raw) != `{"a":"b"}` {
					t.Errorf("chart with %d bytes, values %s", len(deployment.Helm.RawChart), deployment.Helm.Values.Raw)
				}
			})
		})
	}
}

// follow updates the installation as gardener-controller-manager does.
func follow(t *testing.T, garden client.Client) {
	deployment, installation := &gardencorev1.ControllerDeployment{}, &gardencorev1beta1.ControllerInstallation{}
	err := garden.Get(t.Context(), client.ObjectKey{Name: "sample"}, deployment)
	if err == nil {
		err = garden.Get(t.Context(), client.ObjectKey{Name: "sample-x5sjk"}, installation)
	}
	if err == nil {
		installation.Spec.DeploymentRef.ResourceVersion = deployment.ResourceVersion
		err = garden.Update(t.Context(), installation)
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
