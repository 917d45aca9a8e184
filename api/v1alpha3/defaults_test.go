package v1alpha3_test

import (
	"encoding/json"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

func TestSetDefaults(t *testing.T) {
	for name, test := range map[string]struct {
		cache     v1alpha3.RegistryCache
		remoteURL string
		size      string
		ttl       time.Duration
	}{
		"nothing set":    {v1alpha3.RegistryCache{Upstream: "quay.io:5000"}, "https://quay.io:5000", "10Gi", 168 * time.Hour},
		"Docker Hub":     {v1alpha3.RegistryCache{Upstream: "docker.io"}, "https://registry-1.docker.io", "10Gi", 168 * time.Hour},
		"ttl 0s is kept": {v1alpha3.RegistryCache{Upstream: "a.test", GarbageCollection: &v1alpha3.GarbageCollection{}}, "https://a.test", "10Gi", 0},
		"remote URL":     {v1alpha3.RegistryCache{Upstream: "a.test", RemoteURL: new("http://b.test")}, "http://b.test", "10Gi", 168 * time.Hour},
		"trailing slash": {v1alpha3.RegistryCache{Upstream: "a.test", RemoteURL: new("http://b.test/")}, "http://b.test", "10Gi", 168 * time.Hour},
		"volume, no size": {v1alpha3.RegistryCache{Upstream: "a.test", Volume: &v1alpha3.Volume{StorageClassName: new("fast")}},
			"https://a.test", "10Gi", 168 * time.Hour},
		"everything set": {v1alpha3.RegistryCache{
			Upstream:          "docker.io",
			RemoteURL:         new("https://mirror.test"),
			Volume:            &v1alpha3.Volume{Size: new(resource.MustParse("1Gi"))},
			GarbageCollection: &v1alpha3.GarbageCollection{TTL: metav1.Duration{Duration: time.Minute}},
		}, "https://mirror.test", "1Gi", time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			config := &v1alpha3.RegistryConfig{Caches: []v1alpha3.RegistryCache{test.cache}}
			v1alpha3.SetDefaults(config)
			cache := config.Caches[0]
			if *cache.RemoteURL != test.remoteURL {
				t.Errorf("remoteURL: got %s, want %s", *cache.RemoteURL, test.remoteURL)
			}
			if cache.Volume.Size.String() != test.size {
				t.Errorf("volume.size: got %s, want %s", cache.Volume.Size, test.size)
			}
			if got := cache.GarbageCollection.TTL.Duration; got != test.ttl {
				t.Errorf("garbageCollection.ttl: got %s, want %s", got, test.ttl)
			}
			if test.cache.Volume != nil && cache.Volume.StorageClassName != test.cache.Volume.StorageClassName {
				t.Error("the storage class is changed")
			}
		})
	}
}

// TestTLSIsTheDefault: only a missing http means TLS, as in gardener-extension-registry-cache.
func TestTLSIsTheDefault(t *testing.T) {
	for name, test := range map[string]struct {
		cache string
		want  bool
	}{
		"no http":    {`{"upstream":"a.test"}`, true},
		"http null":  {`{"upstream":"a.test","http":null}`, true},
		"empty http": {`{"upstream":"a.test","http":{}}`, false},
		"on":         {`{"upstream":"a.test","http":{"tls":true}}`, true},
		"off":        {`{"upstream":"a.test","http":{"tls":false}}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			config, err := v1alpha3.DecodeConfig([]byte(
				`{"apiVersion":"registry.extensions.gardener.cloud/v1alpha3","kind":"RegistryConfig","caches":[` + test.cache + `]}`))
			if err != nil {
				t.Fatal(err)
			}
			v1alpha3.SetDefaults(config)
			if got := config.Caches[0].HTTP.TLS; got != test.want {
				t.Errorf("http.tls = %t, want %t", got, test.want)
			}
			// status.state contains the config with defaults, and must mean the same when it is read.
			stored, err := json.Marshal(config)
			if err != nil {
				t.Fatal(err)
			}
			again, err := v1alpha3.DecodeConfig(stored)
			if err != nil {
				t.Fatal(err)
			}
			v1alpha3.SetDefaults(again)
			if got := again.Caches[0].HTTP.TLS; got != test.want {
				t.Errorf("stored and read again: http.tls = %t, want %t", got, test.want)
			}
		})
	}
}

func TestSetDefaultsTrimsProxyURLs(t *testing.T) {
	given := "http://proxy.test:3128/"
	config := &v1alpha3.RegistryConfig{Caches: []v1alpha3.RegistryCache{{Upstream: "a.test", Proxy: &v1alpha3.Proxy{HTTPProxy: &given, HTTPSProxy: &given}}}}
	v1alpha3.SetDefaults(config)
	for _, got := range []string{*config.Caches[0].Proxy.HTTPProxy, *config.Caches[0].Proxy.HTTPSProxy} {
		if got != "http://proxy.test:3128" {
			t.Errorf("got %q", got)
		}
	}
	if given != "http://proxy.test:3128/" {
		t.Error("the value of the caller is changed")
	}
}
