package main

import (
	"testing"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/registry/ecr"
)

// TestAccessKeysAreAcceptedWhereTheyWork: the cache knows the region of exactly those upstreams for
// which a Secret may have an access key of AWS.
func TestAccessKeysAreAcceptedWhereTheyWork(t *testing.T) {
	const account = "123456789012"
	for host, want := range map[string]bool{
		account + ".dkr.ecr.eu-central-1.amazonaws.com":        true,
		account + ".dkr.ecr.eu-central-1.amazonaws.com:443":    true,
		account + ".dkr.ecr-fips.us-gov-west-1.amazonaws.com":  true,
		account + ".dkr.ecr.cn-north-1.amazonaws.com.cn":       true,
		account + ".dkr.ecr.eusc-de-east-1.amazonaws.eu":       true,
		account + ".dkr.ecr.eu-central-1.amazonaws.com:5000":   false,
		account + ".dkr.ecr.eu-central-1.amazonaws.com.a.test": false,
		account + ".dkr.ecr.a.b.amazonaws.com":                 false,
		account + ".dkr.ecr.eu-central-1.amazonawsxcom":        false,
		"1234.dkr.ecr.eu-central-1.amazonaws.com":              false,
		"a." + account + ".dkr.ecr.eu-central-1.amazonaws.com": false,
		"public.ecr.aws": false,
		"docker.io":      false,
	} {
		_, err := ecr.New(ecr.Options{Host: host, AccessKeyID: "a", SecretAccessKey: "b"})
		if v1alpha3.IsECR(host) != want || (err == nil) != want {
			t.Errorf("%s: accepted is %t, the cache says %v", host, v1alpha3.IsECR(host), err)
		}
	}
}
