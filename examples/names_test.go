package examples

import (
	"path"
	"reflect"
	"testing"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

// TestExamplesShowWhatTheirNamesSay: each file contains the setting after which it is named.
func TestExamplesShowWhatTheirNamesSay(t *testing.T) {
	for name, shows := range map[string]func(v1alpha3.RegistryCache) bool{
		"minimal": func(c v1alpha3.RegistryCache) bool {
			return reflect.DeepEqual(c, v1alpha3.RegistryCache{Upstream: c.Upstream})
		},
		"credentials": func(c v1alpha3.RegistryCache) bool { return ptr.Deref(c.SecretReferenceName, "") != "" },
		"ecr": func(c v1alpha3.RegistryCache) bool {
			return v1alpha3.IsECR(c.Upstream) && ptr.Deref(c.SecretReferenceName, "") != ""
		},
		"private-ca": func(c v1alpha3.RegistryCache) bool { return ptr.Deref(c.CABundleSecretReferenceName, "") != "" },
		"outbound-proxy": func(c v1alpha3.RegistryCache) bool {
			return c.Proxy != nil && c.Proxy.HTTPSProxy != nil && c.Proxy.NoProxy != nil
		},
		"plain-http":        func(c v1alpha3.RegistryCache) bool { return c.HTTP != nil && !c.HTTP.TLS },
		"high-availability": func(c v1alpha3.RegistryCache) bool { return c.HighAvailability != nil && c.HighAvailability.Enabled },
	} {
		t.Run(name, func(t *testing.T) {
			shoot, _ := readShoot(t, name+".yaml")
			config, err := v1alpha3.DecodeConfig(shoot.Spec.Extensions[0].ProviderConfig.Raw)
			if err != nil {
				t.Fatal(err)
			}
			if !shows(config.Caches[0]) {
				t.Errorf("the file does not have the setting after which it is named: %+v", config.Caches[0])
			}
		})
	}
}

// readShoot returns the Shoot of a file, and its Secrets by name, as the API server would store
// them.
func readShoot(t *testing.T, file string) (*gardencorev1beta1.Shoot, map[string]*corev1.Secret) {
	t.Helper()
	objects, err := decode(path.Join(ShootsFolder, file))
	if err != nil {
		t.Fatal(err)
	}
	var shoot *gardencorev1beta1.Shoot
	secrets := map[string]*corev1.Secret{}
	for _, object := range objects {
		switch object := object.(type) {
		case *gardencorev1beta1.Shoot:
			shoot = object
		case *corev1.Secret:
			object.Data = map[string][]byte{}
			for key, value := range object.StringData {
				object.Data[key] = []byte(value)
			}
			secrets[object.Name] = object
		default:
			t.Errorf("%s has a %T", file, object)
		}
	}
	if shoot == nil || len(shoot.Spec.Extensions) != 1 {
		t.Fatalf("%s has no Shoot with one extension", file)
	}
	for _, secret := range secrets {
		if secret.Namespace != shoot.Namespace {
			t.Errorf("Secret %s is not in the namespace of the Shoot", secret.Name)
		}
	}
	return shoot, secrets
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
