package v1alpha3_test

import (
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

// special are the characters that a shell, systemd, TOML or YAML treats specially inside a word or a quoted string.
const special = " \t\n\r\x00,;&|<>()$`\\\"'*?{}~#%!@="

// FuzzConfig checks that no input makes decoding, defaulting or validation panic, and that a valid config holds nothing
// special where it becomes an argument of the script on the nodes.
func FuzzConfig(f *testing.F) {
	f.Add([]byte(everyField))
	f.Add([]byte(`{` + header + `,"caches":[{"upstream":"[::1]:5000","remoteURL":"http://[::1]:5000","volume":{"size":"1e3"}}]}`))
	f.Add([]byte(`{` + header + `,"caches":[null,{"upstream":null,"volume":null,"garbageCollection":{"ttl":null}}]}`))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		_, _ = v1alpha3.DecodeStatus(raw)
		config, err := v1alpha3.DecodeConfig(raw)
		if err != nil {
			return
		}
		config.DeepCopyObject()
		v1alpha3.SetDefaults(config)
		if len(v1alpha3.Validate(config)) > 0 {
			return
		}
		for _, cache := range config.Caches {
			if strings.ContainsAny(cache.Upstream, special+"/") || strings.ContainsAny(*cache.RemoteURL, special) {
				t.Errorf("upstream %q, remoteURL %q are accepted", cache.Upstream, *cache.RemoteURL)
			}
			if cache.Volume.Size.Sign() <= 0 || cache.GarbageCollection.TTL.Duration < 0 {
				t.Errorf("size %s, ttl %s are accepted", cache.Volume.Size, cache.GarbageCollection.TTL.Duration)
			}
		}
	})
}
