package upstream

import (
	"net/url"
	"testing"
)

// TestTrusts checks which token servers get the upstream's credentials (CVE-2026-33540).
func TestTrusts(t *testing.T) {
	for name, test := range map[string]struct {
		upstream, realm string
		want            bool
	}{
		"same host":                       {"https://registry.example.com", "https://registry.example.com/token", true},
		"other port":                      {"https://registry.example.com", "https://registry.example.com:8443/token", true},
		"upper case":                      {"https://Registry.Example.COM", "https://AUTH.example.com/token", true},
		"sibling":                         {"https://registry-1.docker.io", "https://auth.docker.io/token", true},
		"parent":                          {"https://registry.example.com", "https://example.com/token", true},
		"other domain":                    {"https://registry.example.com", "https://auth.example.org/token", false},
		"suffix of the name":              {"https://example.com", "https://evilexample.com/token", false},
		"upstream as a label":             {"https://example.com", "https://example.com.evil.org/token", false},
		"public suffix":                   {"https://a.github.io", "https://b.github.io/token", false},
		"public suffix of a country":      {"https://registry.co.uk", "https://auth.co.uk/token", false},
		"the public suffix itself":        {"https://a.github.io", "https://github.io/token", false},
		"below a public suffix":           {"https://r.a.github.io", "https://t.a.github.io/token", true},
		"without a dot":                   {"https://registry", "https://auth/token", false},
		"the same without a dot":          {"https://registry", "https://registry:5001/token", true},
		"same IP":                         {"https://10.0.0.1", "https://10.0.0.1:8443/token", true},
		"other IP":                        {"https://10.0.0.1", "https://11.0.0.1/token", false},
		"IP of the same end":              {"https://1.10.0.1", "https://2.10.0.1/token", false},
		"same IPv6":                       {"https://[fd00::1]", "https://[fd00::1]:8443/token", true},
		"other IPv6":                      {"https://[fd00::1]", "https://[fd00::2]/token", false},
		"IP for a name":                   {"https://registry.example.com", "https://10.0.0.1/token", false},
		"realm without TLS":               {"https://registry.example.com", "http://registry.example.com/token", false},
		"realm with TLS":                  {"http://registry.example.com", "https://auth.example.com/token", true},
		"both without TLS":                {"http://registry.example.com", "http://auth.example.com/token", true},
		"user part with the upstream":     {"https://example.com", "https://example.com@evil.org/token", false},
		"trailing dot":                    {"https://registry.example.com", "https://auth.example.com./token", false},
		"trailing dot of a public suffix": {"https://a.github.io", "https://b.github.io./token", false},
	} {
		t.Run(name, func(t *testing.T) {
			target, err := url.Parse(test.upstream)
			if err != nil {
				t.Fatal(err)
			}
			realm, err := url.Parse(test.realm)
			if err != nil {
				t.Fatal(err)
			}
			if got := (&authenticator{upstream: target}).trusts(realm); got != test.want {
				t.Errorf("%s trusts %s: %t", target, realm, got)
			}
		})
	}
}
