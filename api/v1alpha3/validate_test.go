package v1alpha3_test

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

// longHost is a host name of 253 characters, the maximum.
var longHost = strings.Repeat(strings.Repeat("a", 62)+".", 4)[:252] + "a"

func validate(caches ...v1alpha3.RegistryCache) string {
	err := v1alpha3.Validate(&v1alpha3.RegistryConfig{Caches: caches}).ToAggregate()
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestValidateUpstream(t *testing.T) {
	for _, upstream := range []string{
		"docker.io", "registry-1.docker.io:443", "a.b-c", "1.2.3.4", "1.2.3.4:5000",
		"[2001:db8::1]", "[2001:db8::1]:5000", "a:65535", "1password.test", "localhost.test", longHost,
	} {
		if got := validate(v1alpha3.RegistryCache{Upstream: upstream}); got != "" {
			t.Errorf("%q is rejected: %s", upstream, got)
		}
	}
	for _, upstream := range []string{
		"", " ", "https://docker.io", "docker.io/library", "docker.io/", "Docker.io", "-a.test", "a-.test", "a..test", ".", "..",
		"a_b.test", "a.test:", "a.test:0", "a.test:65536", "a.test:05000", "a.test:http", "a.test:1:2", "a.test,b", "a b", "a\n", "a\x00",
		"$(id)", "`id`", "a;b", "a|b", "a'b", `a"b`, `a\b`, "a*", "a%b", "user@a.test", "a.test?x", "a.test#x", "é.test",
		"1.2.3.256", "1.2.3", "01.2.3.4", "::1", "[::1", "[::1]x", "[::1]:", "[fe80::1%eth0]", "[0::1]", "[::A]", "[1.2.3.4]:", "[]", ":5000",
		"0.0.0.0", "0.0.0.0:5000", "[::]", "[::]:5000", "localhost", "localhost:5000", "a.localhost", "127.0.0.1:5000", "127.1.2.3", "[::1]", "[::1]:5000",
		longHost + "a", longHost + ":5000", strings.Repeat("a", 64) + ".test" + strings.Repeat(".a", 120),
	} {
		if got := validate(v1alpha3.RegistryCache{Upstream: upstream}); !strings.Contains(got, "caches[0].upstream") {
			t.Errorf("%q: got %q, want an error at caches[0].upstream", upstream, got)
		}
	}
}

func TestValidateRemoteURL(t *testing.T) {
	for _, url := range []string{"https://a.test", "http://a.test:5000", "https://[2001:db8::1]:5000", "http://10.0.0.1", "https://a.test/"} {
		if got := validate(v1alpha3.RegistryCache{Upstream: "a.test", RemoteURL: &url}); got != "" {
			t.Errorf("%q is rejected: %s", url, got)
		}
	}
	for _, url := range []string{
		"", "a.test", "//a.test", "ftp://a.test", "https://", "https:a.test", "https://a.test//", "https:///", "https://a.test/v2", "https://a.test?x=1",
		"https://a.test?", "https://a.test#x", "https://a.test#", "HTTPS://a.test", "https://A.test", "https://user@a.test",
		"https://user:secret@a.test", "https://a.test:0", "https://a.test:", "https://a b", "https://a,b", "https://$(id)", "https://a%41", "https://a\"b",
		"https://0.0.0.0", "https://[::]:443", "http://localhost", "https://localhost:5000", "http://127.0.0.1:5000", "https://[::1]:5000",
		"https://a.test\n", "https://a'b", "https://a;b", "https://[fe80::1%25eth0]", "https://999.1.1.1",
	} {
		got := validate(v1alpha3.RegistryCache{Upstream: "a.test", RemoteURL: &url})
		if !strings.Contains(got, "caches[0].remoteURL") {
			t.Errorf("%q: got %q, want an error at caches[0].remoteURL", url, got)
		}
		if strings.Contains(url, "user") && !strings.Contains(got, "user information") {
			t.Errorf("%q: the error %q does not name the reason", url, got)
		}
		if strings.Contains(got, "secret") {
			t.Errorf("the error contains a password: %s", got)
		}
	}
}

func TestValidateReportsEachField(t *testing.T) {
	good := v1alpha3.RegistryCache{Upstream: "a.test"}
	volume := func(size, class string) v1alpha3.RegistryCache {
		cache := v1alpha3.RegistryCache{Upstream: "b.test", Volume: &v1alpha3.Volume{Size: new(resource.MustParse(size))}}
		if class != "-" {
			cache.Volume.StorageClassName = &class
		}
		return cache
	}
	suffix := func(upstream, suffix string) v1alpha3.RegistryCache {
		return v1alpha3.RegistryCache{Upstream: upstream, ServiceNameSuffix: &suffix}
	}
	for name, test := range map[string]struct {
		caches []v1alpha3.RegistryCache
		want   string
	}{
		"no cache":            {nil, "caches: Required value"},
		"duplicate":           {[]v1alpha3.RegistryCache{good, {Upstream: "b.test"}, good}, `caches[2].upstream: Duplicate value: "a.test"`},
		"same host, no clash": {[]v1alpha3.RegistryCache{good, {Upstream: "a.test:5000"}}, ""},
		"size 0":              {[]v1alpha3.RegistryCache{good, volume("0", "-")}, "caches[1].volume.size"},
		"negative size":       {[]v1alpha3.RegistryCache{good, volume("-1Gi", "-")}, "caches[1].volume.size"},
		"no unit":             {[]v1alpha3.RegistryCache{good, volume("10", "-")}, "caches[1].volume.size"},
		"thousandths":         {[]v1alpha3.RegistryCache{good, volume("100m", "-")}, "caches[1].volume.size"},
		"small size":          {[]v1alpha3.RegistryCache{good, volume("1Mi", "-")}, ""},
		"a mirror of a node":  {[]v1alpha3.RegistryCache{{Upstream: "localhost:5000", RemoteURL: new("https://a.test")}}, ""},
		"class":               {[]v1alpha3.RegistryCache{good, volume("1Gi", "fast.ssd")}, ""},
		"empty class":         {[]v1alpha3.RegistryCache{good, volume("1Gi", "")}, "caches[1].volume.storageClassName"},
		"class with space":    {[]v1alpha3.RegistryCache{good, volume("1Gi", "a b")}, "caches[1].volume.storageClassName"},
		"ttl 0":               {[]v1alpha3.RegistryCache{{Upstream: "a.test", GarbageCollection: &v1alpha3.GarbageCollection{}}}, ""},
		"negative ttl": {[]v1alpha3.RegistryCache{good, {Upstream: "b.test",
			GarbageCollection: &v1alpha3.GarbageCollection{TTL: metav1.Duration{Duration: -time.Second}}}}, "caches[1].garbageCollection.ttl"},
		"short ttl": {[]v1alpha3.RegistryCache{good, {Upstream: "b.test",
			GarbageCollection: &v1alpha3.GarbageCollection{TTL: metav1.Duration{Duration: 1}}}}, "caches[1].garbageCollection.ttl"},
		"any credentials name":     {[]v1alpha3.RegistryCache{{Upstream: "a.test", SecretReferenceName: new("My creds")}}, ""},
		"empty credentials name":   {[]v1alpha3.RegistryCache{{Upstream: "a.test", SecretReferenceName: new("")}}, "caches[0].secretReferenceName: Required"},
		"empty bundle name":        {[]v1alpha3.RegistryCache{{Upstream: "a.test", CABundleSecretReferenceName: new("")}}, "caches[0].caBundleSecretReferenceName: Required"},
		"suffix":                   {[]v1alpha3.RegistryCache{suffix("a.test", "1")}, ""},
		"longest suffix":           {[]v1alpha3.RegistryCache{suffix("a.test", strings.Repeat("a", 54))}, ""},
		"too long suffix":          {[]v1alpha3.RegistryCache{suffix("a.test", strings.Repeat("a", 55))}, "caches[0].serviceNameSuffix: Too long"},
		"empty suffix":             {[]v1alpha3.RegistryCache{suffix("a.test", "")}, "caches[0].serviceNameSuffix"},
		"suffix with dot":          {[]v1alpha3.RegistryCache{suffix("a.test", "a.b")}, "caches[0].serviceNameSuffix"},
		"upper case suffix":        {[]v1alpha3.RegistryCache{suffix("a.test", "A")}, "caches[0].serviceNameSuffix"},
		"suffix like default name": {[]v1alpha3.RegistryCache{suffix("a.test", "a-test"), {Upstream: "b.test"}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := validate(test.caches...)
			if (test.want == "") != (got == "") || !strings.Contains(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

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
