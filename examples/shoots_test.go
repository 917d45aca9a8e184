package examples

import (
	"reflect"
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

// TestShoots: every Shoot and its providerConfig are valid, and each file contains exactly the
// Secrets that the providerConfig refers to.
func TestShoots(t *testing.T) {
	entries, err := Files.ReadDir(ShootsFolder)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		t.Run(entry.Name(), func(t *testing.T) {
			shoot, secrets := readShoot(t, entry.Name())
			config := validConfig(t, shoot.Spec.Extensions[0].ProviderConfig.Raw)
			used := map[string]bool{}
			for _, reference := range v1alpha3.References(config) {
				name := ""
				for _, resource := range shoot.Spec.Resources {
					if resource.Name == reference.Name {
						name = resource.ResourceRef.Name
					}
				}
				secret := secrets[name]
				if secret == nil {
					t.Errorf("%s: no Secret %q in the file", reference.Path, name)
					continue
				}
				used[name] = true
				if errs := reference.Validate(secret); len(errs) > 0 {
					t.Error(errs.ToAggregate())
				}
			}
			if len(used) != len(secrets) {
				t.Errorf("the file has %d Secrets, the config refers to %d", len(secrets), len(used))
			}
			if len(shoot.Spec.Provider.Workers) == 0 {
				t.Error("a Shoot without workers is refused")
			}
		})
	}
}

// TestEveryField: every-field.yaml contains each field of the API, with its default if it has one.
func TestEveryField(t *testing.T) {
	shoot, _ := readShoot(t, "every-field.yaml")
	config, err := v1alpha3.DecodeConfig(shoot.Spec.Extensions[0].ProviderConfig.Raw)
	if err != nil {
		t.Fatal(err)
	}
	cache := config.Caches[0]
	everythingIsSet(t, reflect.ValueOf(cache), "caches[0]")

	defaulted := &v1alpha3.RegistryConfig{Caches: []v1alpha3.RegistryCache{{Upstream: cache.Upstream}}}
	v1alpha3.SetDefaults(defaulted)
	want := defaulted.Caches[0]
	if *cache.RemoteURL != *want.RemoteURL || cache.Volume.Size.Cmp(*want.Volume.Size) != 0 || *cache.GarbageCollection != *want.GarbageCollection {
		t.Errorf("the defaults are %+v, the example shows %+v", want, cache)
	}
	if *cache.HTTP != *want.HTTP || cache.HighAvailability.Enabled {
		t.Error("TLS is on and high availability is off by default, the example shows something else")
	}
}

// everythingIsSet requires that no pointer in a struct is nil and no string is empty.
func everythingIsSet(t *testing.T, value reflect.Value, path string) {
	t.Helper()
	switch value.Kind() {
	case reflect.Pointer:
		if value.IsNil() {
			t.Errorf("no example sets %s", path)
			return
		}
		everythingIsSet(t, value.Elem(), path)
	case reflect.Struct:
		for i := range value.NumField() {
			if field := value.Type().Field(i); field.IsExported() && strings.HasPrefix(value.Type().PkgPath(), "github.com/gardener-extensions/") {
				everythingIsSet(t, value.Field(i), path+"."+field.Name)
			}
		}
	}
}
