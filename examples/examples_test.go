package examples

import (
	"slices"
	"strings"
	"testing"

	gardencorev1 "github.com/gardener/gardener/pkg/apis/core/v1"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	operatorv1alpha1 "github.com/gardener/gardener/pkg/apis/operator/v1alpha1"
	"github.com/gardener/gardener/pkg/utils/gardener/operator"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

func TestControllerRegistration(t *testing.T) {
	registration, err := ControllerRegistration()
	if err != nil {
		t.Fatal(err)
	}
	if len(registration.Spec.Resources) != 1 {
		t.Fatalf("resources = %+v, want one", registration.Spec.Resources)
	}
	resource := registration.Spec.Resources[0]
	if resource.Kind != "Extension" || resource.Type != v1alpha3.ExtensionType {
		t.Errorf("registered for %s/%s", resource.Kind, resource.Type)
	}
	if resource.Lifecycle == nil || resource.Lifecycle.Delete == nil || *resource.Lifecycle.Delete != gardencorev1beta1.BeforeKubeAPIServer {
		t.Errorf("lifecycle = %+v, want the deletion before that of the API server", resource.Lifecycle)
	}
}

// TestControllerDeployment: the registration refers to the ControllerDeployment.
func TestControllerDeployment(t *testing.T) {
	deployment, err := singleObject[*gardencorev1.ControllerDeployment](deploymentFile)
	if err != nil {
		t.Fatal(err)
	}
	registration, err := ControllerRegistration()
	if err != nil {
		t.Fatal(err)
	}
	if name := registration.Spec.Deployment.DeploymentRefs[0].Name; name != deployment.Name {
		t.Errorf("the registration refers to deployment %q, but the deployment is %q", name, deployment.Name)
	}
}

// TestOperatorExtension: from the Extension, the code of gardener-operator creates the same
// registration as the one in controller-registration.yaml.
func TestOperatorExtension(t *testing.T) {
	extension, err := singleObject[*operatorv1alpha1.Extension](operatorFile)
	if err != nil {
		t.Fatal(err)
	}
	want, err := ControllerRegistration()
	if err != nil {
		t.Fatal(err)
	}
	got, _ := operator.ControllerRegistrationForExtension(extension)
	if !apiequality.Semantic.DeepEqual(got.Spec.Resources, want.Spec.Resources) {
		t.Errorf("resources = %+v, want those of %s: %+v", got.Spec.Resources, registrationFile, want.Spec.Resources)
	}
	for key, value := range want.Annotations {
		if got.Annotations[key] != value {
			t.Errorf("annotation %s = %q, want that of %s: %q", key, got.Annotations[key], registrationFile, value)
		}
	}
}

// TestNoFileIsForgotten: every example is read by some test.
func TestNoFileIsForgotten(t *testing.T) {
	entries, err := Files.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	known := []string{deploymentFile, registrationFile, operatorFile, ShootsFolder}
	for _, entry := range entries {
		if !slices.Contains(known, entry.Name()) && !strings.HasPrefix(entry.Name(), "admission") {
			t.Errorf("no test reads %s", entry.Name())
		}
	}
}
