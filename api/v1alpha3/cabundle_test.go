package v1alpha3_test

import (
	"bytes"
	"encoding/pem"
	"fmt"
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

func TestValidateCABundle(t *testing.T) {
	one, two := certificate(t), certificate(t)
	key := string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: []byte("secret")}))
	headers := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x"), Headers: map[string]string{"a": "b"}}))
	for name, test := range map[string]struct {
		immutable *bool
		data      map[string]string
		want      string
	}{
		"one":              {new(true), map[string]string{"bundle.crt": one}, ""},
		"two":              {new(true), map[string]string{"bundle.crt": one + two}, ""},
		"text between":     {new(true), map[string]string{"bundle.crt": "# my CA\n" + one + "\n'''\r\n" + two}, ""},
		"carriage returns": {new(true), map[string]string{"bundle.crt": strings.ReplaceAll(one, "\n", "\r\n")}, ""},
		"mutable":          {nil, map[string]string{"bundle.crt": one}, "must be immutable"},
		"no bundle":        {new(true), nil, `lacks the key "bundle.crt"`},
		"other key":        {new(true), map[string]string{"bundle.crt": one, "ca.crt": one}, `must have no keys other than bundle.crt, but has "ca.crt"`},
		"empty":            {new(true), map[string]string{"bundle.crt": ""}, `must hold PEM certificates in the key "bundle.crt": none found`},
		"not PEM":          {new(true), map[string]string{"bundle.crt": "certificate"}, "must hold PEM certificates"},
		"private key":      {new(true), map[string]string{"bundle.crt": one + key}, `must hold PEM certificates in the key "bundle.crt": block 2 is a EC PRIVATE KEY`},
		"headers":          {new(true), map[string]string{"bundle.crt": headers}, `must hold PEM certificates in the key "bundle.crt": certificate 1 has PEM headers`},
		"cut":              {new(true), map[string]string{"bundle.crt": one + two[:len(two)/2]}, `must hold PEM certificates in the key "bundle.crt": only 1 of 2 blocks`},
		"garbled": {new(true), map[string]string{"bundle.crt": "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"},
			`must hold PEM certificates in the key "bundle.crt": certificate 1 cannot be read`},
		"largest":   {new(true), map[string]string{"bundle.crt": one + strings.Repeat("#", v1alpha3.MaxCABundleSize-len(one))}, ""},
		"too large": {new(true), map[string]string{"bundle.crt": one + strings.Repeat("#", v1alpha3.MaxCABundleSize-len(one)+1)}, "has 65537 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			checkSecretErrors(t, v1alpha3.ValidateCABundle(secret(test.immutable, test.data), secretPath), test.want)
		})
	}
}

func TestCABundle(t *testing.T) {
	one, two := certificate(t), certificate(t)
	written := "# my CA\r\n" + strings.ReplaceAll(one, "\n", "\r\n") + "''' \r\n" + two
	if got := v1alpha3.CABundle(secret(new(true), map[string]string{"bundle.crt": written})); !bytes.Equal(got, []byte(one+two)) {
		t.Errorf("got %q, want %q", got, one+two)
	}
	for _, bad := range []string{"", "x", one + one[:100]} {
		if got := v1alpha3.CABundle(secret(new(true), map[string]string{"bundle.crt": bad})); got != nil {
			t.Errorf("%q gives %q", bad, got)
		}
	}
}

// TestValidateCABundles checks the limit on the total size.
func TestValidateCABundles(t *testing.T) {
	const quarter = v1alpha3.MaxCABundlesSize / 4
	for name, test := range map[string]struct {
		sizes []int // the size of each cache's CA bundle, -1 for none
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
					cache.CABundleSecretReferenceName = new("same") // the shared Secret counts for each cache
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
