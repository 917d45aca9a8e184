package examples

import (
	"strings"
	"testing"

	gardencorev1 "github.com/gardener/gardener/pkg/apis/core/v1"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"sigs.k8s.io/yaml"

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
	if resource.Kind != "Extension" || resource.Type != "registry-cache" {
		t.Errorf("registered for %s/%s", resource.Kind, resource.Type)
	}
	if resource.Lifecycle == nil || resource.Lifecycle.Delete == nil || *resource.Lifecycle.Delete != gardencorev1beta1.BeforeKubeAPIServer {
		t.Errorf("lifecycle = %+v, want the deletion before the API server goes", resource.Lifecycle)
	}
}

func TestControllerDeployment(t *testing.T) {
	objects, err := decode(registrationFile)
	if err != nil {
		t.Fatal(err)
	}
	if len(objects) != 2 {
		t.Fatalf("%s has %d objects, want 2", registrationFile, len(objects))
	}
	deployment, ok := objects[0].(*gardencorev1.ControllerDeployment)
	if !ok {
		t.Fatalf("the first object is a %T", objects[0])
	}
	for _, image := range []string{"name: registry-cache\n", "name: registry-cleaner\n"} {
		if values, err := yaml.JSONToYAML(deployment.Helm.Values.Raw); err != nil || !strings.Contains(string(values), image) {
			t.Errorf("the values do not replace the placeholder of image %q: %s, %v", image, values, err)
		}
	}
	registration, err := ControllerRegistration()
	if err != nil {
		t.Fatal(err)
	}
	if name := registration.Spec.Deployment.DeploymentRefs[0].Name; name != deployment.Name {
		t.Errorf("the registration refers to deployment %q, there is %q", name, deployment.Name)
	}
}

func TestShoot(t *testing.T) {
	objects, err := decode("shoot.yaml")
	if err != nil {
		t.Fatal(err)
	}
	shoot, ok := objects[0].(*gardencorev1beta1.Shoot)
	if !ok || len(shoot.Spec.Extensions) != 1 {
		t.Fatalf("shoot.yaml has no Shoot with one extension, but %T", objects[0])
	}
	validConfig(t, shoot.Spec.Extensions[0].ProviderConfig.Raw)
}

// TestRegistryConfig checks also what registry-config.yaml says about defaults.
func TestRegistryConfig(t *testing.T) {
	content, err := Files.ReadFile("registry-config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	written := validConfig(t, content).Caches[0]
	defaulted := &v1alpha3.RegistryConfig{Caches: []v1alpha3.RegistryCache{{Upstream: written.Upstream}}}
	v1alpha3.SetDefaults(defaulted)
	want := defaulted.Caches[0]
	if *written.RemoteURL != *want.RemoteURL || written.Volume.Size.Cmp(*want.Volume.Size) != 0 || *written.GarbageCollection != *want.GarbageCollection {
		t.Errorf("registry-config.yaml does not show the defaults: %+v, want %+v", written, want)
	}
}

func validConfig(t *testing.T, raw []byte) *v1alpha3.RegistryConfig {
	t.Helper()
	config, err := v1alpha3.DecodeConfig(raw)
	if err != nil {
		t.Fatal(err)
	}
	v1alpha3.SetDefaults(config)
	if errs := v1alpha3.Validate(config); len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	return config
}
