package v1alpha3_test

import (
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

// special are the characters that are special in words or quoted strings of a shell, systemd, TOML
// or YAML.
const special = " \t\n\r\x00,;&|<>()$`\\\"'*?{}~#%!@="

// FuzzConfig checks that no input makes decoding, defaulting or validation panic. Some values
// become arguments of the node script or names of objects. FuzzConfig also checks that in a valid
// config these values contain no special characters.
//
//	go test -fuzz=FuzzConfig -fuzztime=1m ./api/v1alpha3
func FuzzConfig(f *testing.F) {
	f.Add([]byte(everyField))
	f.Add([]byte(`{` + header + `,"caches":[{"upstream":"[::1]:5000","remoteURL":"http://[::1]:5000/","volume":{"size":"1e3"}}]}`))
	f.Add([]byte(`{` + header + `,"caches":[null,{"upstream":null,"volume":null,"garbageCollection":{"ttl":null}}]}`))
	f.Add([]byte(`{` + header + `,"caches":[{"upstream":"a.test","secretReferenceName":"c","caBundleSecretReferenceName":"b","http":{"tls":true},` +
		`"highAvailability":{"enabled":true},"serviceNameSuffix":"s","proxy":{"httpProxy":"http://p.test:1/","httpsProxy":"https://p.test",` +
		`"noProxy":"a.test:1, *.b.test,::1,10.0.0.0/8"}}]}`))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		_, _ = v1alpha3.DecodeStatus(raw)
		config, err := v1alpha3.DecodeConfig(raw)
		if errs := v1alpha3.DecodeErrors(err); (err == nil) != (len(errs) == 0) {
			t.Fatalf("DecodeErrors(%v) = %v", err, errs)
		}
		if err != nil {
			return
		}
		before := v1alpha3.Validate(config)
		checkDefaults(t, config)
		after := v1alpha3.Validate(config)
		if (len(before) == 0) != (len(after) == 0) {
			t.Fatalf("defaults change the result: before %v, after %v", before, after)
		}
		if errs := v1alpha3.ValidateUpdate(config, config, nil); len(errs) < len(after) {
			t.Fatalf("ValidateUpdate finds %v, Validate %v", errs, after)
		} else if len(after) == 0 && len(errs) > 0 {
			t.Fatalf("an unchanged config is rejected: %v", errs)
		}
		if len(after) == 0 {
			checkValid(t, config)
		}
	})
}

// checkDefaults sets the defaults. The config must not change if they are set again, or if it is
// stored and read again.
func checkDefaults(t *testing.T, config *v1alpha3.RegistryConfig) {
	given := config.DeepCopy()
	v1alpha3.SetDefaults(config)
	again := config.DeepCopy()
	v1alpha3.SetDefaults(again)
	if len(v1alpha3.Validate(given)) == 0 && !equality.Semantic.DeepEqual(config, again) {
		t.Fatalf("defaults of defaults differ: %+v, %+v", config, again)
	}
	stored, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	if read, err := v1alpha3.DecodeConfig(stored); err != nil || !equality.Semantic.DeepEqual(read.Caches, config.Caches) {
		t.Fatalf("%s is read as %+v, %v", stored, read, err)
	}
}

func checkValid(t *testing.T, config *v1alpha3.RegistryConfig) {
	services, identities := map[string]bool{}, v1alpha3.Identify(config.Caches, nil)
	for i := range config.Caches {
		cache := &config.Caches[i]
		if strings.ContainsAny(cache.Upstream, special+"/") || strings.ContainsAny(*cache.RemoteURL, special) {
			t.Errorf("upstream %q, remoteURL %q are accepted", cache.Upstream, *cache.RemoteURL)
		}
		if cache.Volume.Size.Sign() <= 0 || cache.GarbageCollection.TTL.Duration < 0 {
			t.Errorf("size %s, ttl %s are accepted", cache.Volume.Size, cache.GarbageCollection.TTL.Duration)
		}
		service := identities[i].ServiceName(cache)
		if reasons := validation.IsDNS1035Label(service); len(reasons) > 0 || services[service] {
			t.Errorf("service name %q is accepted: %v", service, reasons)
		}
		services[service] = true
		if proxy := cache.Proxy; proxy != nil {
			checkProxy(t, proxy)
		}
	}
	for _, reference := range v1alpha3.References(config) {
		if reference.Name == "" {
			t.Errorf("%s is an empty reference", reference.Path)
		}
	}
}

func checkProxy(t *testing.T, proxy *v1alpha3.Proxy) {
	for _, url := range []*string{proxy.HTTPProxy, proxy.HTTPSProxy} {
		if url != nil && strings.ContainsAny(*url, special) {
			t.Errorf("proxy %q is accepted", *url)
		}
	}
	for _, entry := range v1alpha3.NoProxyEntries(proxy) {
		if strings.ContainsAny(strings.TrimPrefix(entry, "*."), special) || entry == "" {
			t.Errorf("noProxy entry %q is accepted", entry)
		}
	}
}
