package v1alpha3_test

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

func sized(size string) v1alpha3.RegistryCache {
	return v1alpha3.RegistryCache{Upstream: "a.test", Volume: &v1alpha3.Volume{Size: new(resource.MustParse(size))}}
}

func classed(class string) v1alpha3.RegistryCache {
	return v1alpha3.RegistryCache{Upstream: "a.test", Volume: &v1alpha3.Volume{StorageClassName: &class}}
}

func collected(ttl time.Duration) v1alpha3.RegistryCache {
	return v1alpha3.RegistryCache{Upstream: "a.test", GarbageCollection: &v1alpha3.GarbageCollection{TTL: metav1.Duration{Duration: ttl}}}
}

func suffixed(upstream, suffix string) v1alpha3.RegistryCache {
	return v1alpha3.RegistryCache{Upstream: upstream, ServiceNameSuffix: &suffix}
}

// TestValidateUpdate runs each case with and without defaults in both configs. The result must be
// the same.
func TestValidateUpdate(t *testing.T) {
	plain, other := v1alpha3.RegistryCache{Upstream: "a.test"}, v1alpha3.RegistryCache{Upstream: "b.test"}
	for name, test := range map[string]struct {
		old, config []v1alpha3.RegistryCache
		want        string // "" if valid
	}{
		"nothing changed":           {[]v1alpha3.RegistryCache{plain}, []v1alpha3.RegistryCache{plain}, ""},
		"new config is invalid":     {[]v1alpha3.RegistryCache{plain}, []v1alpha3.RegistryCache{plain, {Upstream: "B"}}, "caches[1].upstream"},
		"size grows":                {[]v1alpha3.RegistryCache{sized("1Gi")}, []v1alpha3.RegistryCache{sized("1025Mi")}, ""},
		"size in another unit":      {[]v1alpha3.RegistryCache{sized("1Gi")}, []v1alpha3.RegistryCache{sized("1024Mi")}, ""},
		"size shrinks":              {[]v1alpha3.RegistryCache{sized("1Gi")}, []v1alpha3.RegistryCache{sized("1023Mi")}, ""},
		"size shrinks to default":   {[]v1alpha3.RegistryCache{sized("11Gi")}, []v1alpha3.RegistryCache{plain}, ""},
		"class stays":               {[]v1alpha3.RegistryCache{classed("fast")}, []v1alpha3.RegistryCache{classed("fast")}, ""},
		"class changes":             {[]v1alpha3.RegistryCache{classed("fast")}, []v1alpha3.RegistryCache{classed("slow")}, "caches[0].volume.storageClassName"},
		"class is removed":          {[]v1alpha3.RegistryCache{classed("fast")}, []v1alpha3.RegistryCache{plain}, "caches[0].volume.storageClassName"},
		"class is added":            {[]v1alpha3.RegistryCache{plain}, []v1alpha3.RegistryCache{classed("fast")}, "caches[0].volume.storageClassName"},
		"collection is disabled":    {[]v1alpha3.RegistryCache{plain}, []v1alpha3.RegistryCache{collected(0)}, ""},
		"collection stays disabled": {[]v1alpha3.RegistryCache{collected(0)}, []v1alpha3.RegistryCache{collected(0)}, ""},
		"collection is enabled":     {[]v1alpha3.RegistryCache{collected(0)}, []v1alpha3.RegistryCache{collected(time.Hour)}, "caches[0].garbageCollection.ttl"},
		"collection by default":     {[]v1alpha3.RegistryCache{collected(0)}, []v1alpha3.RegistryCache{plain}, "caches[0].garbageCollection.ttl"},
		"collection is shortened":   {[]v1alpha3.RegistryCache{collected(time.Hour)}, []v1alpha3.RegistryCache{collected(time.Second)}, ""},
		"new cache of any size":     {[]v1alpha3.RegistryCache{other}, []v1alpha3.RegistryCache{other, sized("1Gi")}, ""},
		"order changes":             {[]v1alpha3.RegistryCache{sized("20Gi"), other}, []v1alpha3.RegistryCache{other, sized("20Gi")}, ""},
		"path is in the new config": {[]v1alpha3.RegistryCache{classed("fast"), other}, []v1alpha3.RegistryCache{other, plain}, "caches[1].volume.storageClassName"},
		"suffix is added":           {[]v1alpha3.RegistryCache{plain}, []v1alpha3.RegistryCache{suffixed("a.test", "x")}, ""},
		"suffix is removed":         {[]v1alpha3.RegistryCache{suffixed("a.test", "x")}, []v1alpha3.RegistryCache{plain}, ""},
		"suffix stays":              {[]v1alpha3.RegistryCache{suffixed("a.test", "x")}, []v1alpha3.RegistryCache{suffixed("a.test", "x")}, ""},
		"suffixes are swapped": {[]v1alpha3.RegistryCache{suffixed("a.test", "x"), suffixed("b.test", "y")},
			[]v1alpha3.RegistryCache{suffixed("a.test", "z"), suffixed("b.test", "x")}, "caches[1].serviceNameSuffix"},
		"name of a removed cache": {[]v1alpha3.RegistryCache{plain}, []v1alpha3.RegistryCache{suffixed("b.test", "a-test")}, "caches[0].serviceNameSuffix"},
		"new cache, taken name":   {[]v1alpha3.RegistryCache{suffixed("a.test", "b-test")}, []v1alpha3.RegistryCache{other}, "caches[0].upstream: Forbidden"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, defaulted := range []struct{ config, old bool }{{false, false}, {false, true}, {true, false}, {true, true}} {
				config := (&v1alpha3.RegistryConfig{Caches: test.config}).DeepCopy()
				old := (&v1alpha3.RegistryConfig{Caches: test.old}).DeepCopy()
				if defaulted.config {
					v1alpha3.SetDefaults(config)
				}
				if defaulted.old {
					v1alpha3.SetDefaults(old)
				}
				errs := v1alpha3.ValidateUpdate(config, old, nil)
				if (len(errs) == 0) != (test.want == "") || len(errs) > 1 {
					t.Errorf("defaulted %+v: got %v, want %q", defaulted, errs, test.want)
				} else if len(errs) == 1 && !strings.Contains(errs[0].Error(), test.want) {
					t.Errorf("defaulted %+v: got %q, want %q", defaulted, errs[0], test.want)
				}
			}
		})
	}
}

func TestValidateUpdateWithoutOldIsValidate(t *testing.T) {
	if errs := v1alpha3.ValidateUpdate(&v1alpha3.RegistryConfig{}, nil, nil); len(errs) != 1 || errs[0].Field != "caches" {
		t.Errorf("got %v", errs)
	}
}

// TestValidateUpdateWithRecordedNames: after the removal of a.b, the cache of a-b keeps its longer
// name, which no other cache may take.
func TestValidateUpdateWithRecordedNames(t *testing.T) {
	first, second := v1alpha3.RegistryCache{Upstream: "a.b"}, v1alpha3.RegistryCache{Upstream: "a-b"}
	recorded := v1alpha3.Identify([]v1alpha3.RegistryCache{first, second}, nil)[1:]
	hash := strings.TrimPrefix(recorded[0].Name, "registry-")
	old := &v1alpha3.RegistryConfig{Caches: []v1alpha3.RegistryCache{second}}
	config := &v1alpha3.RegistryConfig{Caches: []v1alpha3.RegistryCache{second, {Upstream: "c.d", ServiceNameSuffix: &hash}}}
	if errs := v1alpha3.ValidateUpdate(config, old, nil); len(errs) > 0 {
		t.Error(errs)
	}
	if errs := v1alpha3.ValidateUpdate(config, old, recorded); len(errs) != 1 || errs[0].Field != "caches[1].serviceNameSuffix" {
		t.Error(errs)
	}
}
