package v1alpha3_test

import (
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

func TestValidateUniqueRegistries(t *testing.T) {
	plain := func(upstream string) v1alpha3.RegistryCache {
		return v1alpha3.RegistryCache{Upstream: upstream, RemoteURL: new("http://" + upstream)}
	}
	for name, test := range map[string]struct {
		first, second v1alpha3.RegistryCache
		want          bool
	}{
		"port of https":                   {v1alpha3.RegistryCache{Upstream: "a.test"}, v1alpha3.RegistryCache{Upstream: "a.test:443"}, true},
		"reversed":                        {v1alpha3.RegistryCache{Upstream: "a.test:443"}, v1alpha3.RegistryCache{Upstream: "a.test"}, true},
		"Docker Hub with port":            {v1alpha3.RegistryCache{Upstream: "docker.io"}, v1alpha3.RegistryCache{Upstream: "docker.io:443"}, true},
		"Docker Hub by its old name":      {v1alpha3.RegistryCache{Upstream: "docker.io"}, v1alpha3.RegistryCache{Upstream: "index.docker.io"}, true},
		"IPv6":                            {v1alpha3.RegistryCache{Upstream: "[::1]"}, v1alpha3.RegistryCache{Upstream: "[::1]:443"}, true},
		"port of http":                    {plain("a.test"), plain("a.test:80"), true},
		"http, port of https":             {plain("a.test"), plain("a.test:443"), false},
		"https, port of http":             {v1alpha3.RegistryCache{Upstream: "a.test"}, v1alpha3.RegistryCache{Upstream: "a.test:80"}, false},
		"other port":                      {v1alpha3.RegistryCache{Upstream: "a.test"}, v1alpha3.RegistryCache{Upstream: "a.test:5000"}, false},
		"address that ends in the number": {v1alpha3.RegistryCache{Upstream: "[2001:db8::]"}, v1alpha3.RegistryCache{Upstream: "[2001:db8::443]"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			got := validate(test.first, test.second)
			if found := strings.Contains(got, "caches[1].upstream: Duplicate value"); found != test.want || (got == "") == test.want {
				t.Errorf("got %q, want a duplicate: %t", got, test.want)
			}
			if test.want && !strings.Contains(got, "is the same registry as "+test.first.Upstream) {
				t.Errorf("%q does not name the other upstream", got)
			}
		})
	}
}

func TestValidateDuplicateUpstream(t *testing.T) {
	twice := v1alpha3.RegistryCache{Upstream: "a.test"}
	if got := validate(twice, twice); got != `caches[1].upstream: Duplicate value: "a.test"` {
		t.Errorf("got %q", got)
	}
}

func TestValidateUniqueServices(t *testing.T) {
	named := func(upstream, suffix string) v1alpha3.RegistryCache {
		return v1alpha3.RegistryCache{Upstream: upstream, ServiceNameSuffix: &suffix}
	}
	a, b := v1alpha3.RegistryCache{Upstream: "a.test"}, v1alpha3.RegistryCache{Upstream: "b.test"}
	for name, test := range map[string]struct {
		caches []v1alpha3.RegistryCache
		want   string
	}{
		"two suffixes":                  {[]v1alpha3.RegistryCache{named("a.test", "x"), named("b.test", "x")}, "caches[1].serviceNameSuffix"},
		"suffix, then name":             {[]v1alpha3.RegistryCache{named("a.test", "b-test"), b}, "caches[0].serviceNameSuffix"},
		"name, then suffix":             {[]v1alpha3.RegistryCache{a, named("b.test", "a-test")}, "caches[1].serviceNameSuffix"},
		"default name of another cache": {[]v1alpha3.RegistryCache{named("a.test", "x"), named("b.test", "a-test")}, "caches[1].serviceNameSuffix"},
		"different":                     {[]v1alpha3.RegistryCache{named("a.test", "x"), named("b.test", "y")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := validate(test.caches...)
			if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
