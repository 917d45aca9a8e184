package v1alpha3_test

import (
	"fmt"
	"testing"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

// TestValidateCABundles checks the limit on the total size.
func TestValidateCABundles(t *testing.T) {
	const quarter = v1alpha3.MaxCABundlesSize / 4
	for name, test := range map[string]struct {
		sizes []int // of the CA bundles of caches, -1 for a cache without one
		want  string
	}{
		"none":          {[]int{-1, -1}, ""},
		"maximum":       {[]int{quarter, quarter, -1, quarter, quarter}, ""},
		"one byte more": {[]int{quarter, quarter, quarter, quarter + 1}, "caches[3]"},
		"many":          {[]int{quarter, quarter, quarter, quarter, -1, 1, quarter}, "caches[5]"},
		"unknown":       {[]int{0, 0}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			config, bundles, sum := &v1alpha3.RegistryConfig{}, map[string][]byte{}, 0
			for i, size := range test.sizes {
				cache := v1alpha3.RegistryCache{Upstream: fmt.Sprintf("r%d.test", i), SecretReferenceName: new("login")}
				if size >= 0 {
					cache.CABundleSecretReferenceName = new("same") // it counts for each cache
					bundles[cache.Upstream] = make([]byte, size)
					sum += size
				}
				config.Caches = append(config.Caches, cache)
			}
			got := v1alpha3.ValidateCABundles(config, bundles)
			if test.want == "" && len(got) == 0 {
				return
			}
			want := fmt.Sprintf("%s.caBundleSecretReferenceName: Invalid value: the CA bundles of all caches have %d bytes in total, at most 262144 are allowed: "+
				"remove the CAs that no upstream needs", test.want, sum)
			if len(got) != 1 || got[0].Error() != want {
				t.Errorf("got %v, want %s", got, want)
			}
		})
	}
}
