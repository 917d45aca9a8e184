package v1alpha3_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

// longest is a host of 253 characters, the maximum in DNS.
var longest = strings.Repeat("a123456789.", 22) + "example.com"

func cachesOf(upstreams ...string) []v1alpha3.RegistryCache {
	caches := make([]v1alpha3.RegistryCache, 0, len(upstreams))
	for _, upstream := range upstreams {
		caches = append(caches, v1alpha3.RegistryCache{Upstream: upstream})
	}
	return caches
}

// TestIdentify compares new caches with names and labels of gardener-extension-registry-cache, as
// read from a cluster.
func TestIdentify(t *testing.T) {
	for upstream, want := range map[string]v1alpha3.Identity{
		"docker.io":                 {Name: "registry-docker-io", HostLabel: "docker.io"},
		"localhost":                 {Name: "registry-localhost", HostLabel: "localhost"},
		"europe-docker.pkg.dev":     {Name: "registry-europe-docker-pkg-dev", HostLabel: "europe-docker.pkg.dev"},
		"registry.example.com:5000": {Name: "registry-registry-example-com-5000", HostLabel: "registry.example.com-5000"},
		"a-really-long-registry-host-name.with.many.labels.example.internal.org": {
			Name: "registry-a-really-long-registry-host-name-with-7dae7", HostLabel: "a-really-long-registry-host-name.with-7dae7",
		},
		"[2001:db8::1]:5000": {Name: "registry-2001-db8--1--5000", HostLabel: "2001-db8--1--5000"},
	} {
		want.Upstream = upstream
		if got := v1alpha3.Identify(cachesOf(upstream), nil); len(got) != 1 || !reflect.DeepEqual(got[0], want) {
			t.Errorf("%s: got %+v, want %+v", upstream, got, want)
		}
	}
}

func ExampleIdentify() {
	for _, id := range v1alpha3.Identify(cachesOf("a.b-c", "a-b.c"), nil) {
		fmt.Println(id.Upstream, id.Name)
	}
	// Output:
	// a.b-c registry-a-b-c
	// a-b.c registry-a-b-c-fb187
}

// TestIdentitiesAreUniqueAndValid uses hosts that a naive mapping would give the same or an invalid
// name, in both orders.
func TestIdentitiesAreUniqueAndValid(t *testing.T) {
	upstreams := []string{
		"a.b-c", "a-b.c", "a.b.c", "a-b-c", "x:5000", "x-5000", "x.5000",
		longest, longest[1:], longest + ":5000", longest[:len(longest)-1] + "n",
		strings.Repeat("a", 43), strings.Repeat("a", 60) + ".b", strings.Repeat("a", 60) + ".c",
		"xn--bcher-kva.example", "127.0.0.1:5000", "[::1]:5000", "[::1]:5001", "[1::]:5000", "1--5000", "[::1]",
	}
	for range 2 {
		names, labels := map[string]bool{}, map[string]bool{}
		for _, id := range v1alpha3.Identify(cachesOf(upstreams...), nil) {
			if errs := validation.IsDNS1035Label(id.Name); len(errs) > 0 || len(id.Name) > 52 {
				t.Errorf("name %q: %v", id.Name, errs)
			}
			for _, value := range []string{id.HostLabel, id.Name + "-" + strings.Repeat("f", 10)} {
				if errs := validation.IsValidLabelValue(value); len(errs) > 0 {
					t.Errorf("label value %q: %v", value, errs)
				}
			}
			if names[id.Name] || labels[id.HostLabel] {
				t.Errorf("%+v is like another", id)
			}
			names[id.Name], labels[id.HostLabel] = true, true
		}
		slices.Reverse(upstreams)
	}
}

// TestRunningCachesKeepTheirNames checks that only new caches get another name if names collide,
// even while the cache with the wanted name is being removed.
func TestRunningCachesKeepTheirNames(t *testing.T) {
	const hashed = "registry-a-b-c-fb187" // of a-b.c
	running := v1alpha3.Identities{
		{Upstream: "a-b.c", Name: "registry-a-b-c", HostLabel: "a-b.c", Address: "10.0.0.1"},
		{Upstream: "old.test:5000", Name: "registry-old-test-5000--01234567", HostLabel: "old.test_5000"},
	}
	for name, test := range map[string]struct{ upstreams, names []string }{
		"nothing changes":   {[]string{"a-b.c", "old.test:5000"}, []string{"registry-a-b-c", "registry-old-test-5000--01234567"}},
		"new before":        {[]string{"a.b-c", "a-b.c"}, []string{"registry-a-b-c-ab8bb", "registry-a-b-c"}},
		"replaced":          {[]string{"a.b-c"}, []string{"registry-a-b-c-ab8bb"}},
		"hash is taken too": {[]string{"a-b.c", "a.b-c.ab8bb", "a.b-c"}, []string{"registry-a-b-c", "registry-a-b-c-ab8bb", "registry-a-b-c-ab8bb2"}},
	} {
		t.Run(name, func(t *testing.T) {
			var names []string
			for i, id := range v1alpha3.Identify(cachesOf(test.upstreams...), running) {
				names = append(names, id.Name)
				if known, runs := running.Of(test.upstreams[i]); runs && !reflect.DeepEqual(id, known) {
					t.Errorf("%+v becomes %+v", known, id)
				}
			}
			if !slices.Equal(names, test.names) {
				t.Errorf("got %v, want %v", names, test.names)
			}
		})
	}
	if got := v1alpha3.Identify(cachesOf("a.b-c", "a-b.c"), nil); got[1].Name != hashed {
		t.Errorf("got %+v, want the second with %s", got, hashed)
	}
}
