//go:build e2e

package e2e

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/controller/cache"
	"github.com/gardener-extensions/registry-cache/kind/certificate"
)

// dryRunCache is a cache and what its references lead to.
type dryRunCache struct {
	cache   v1alpha3.RegistryCache
	secrets cache.Secrets
}

// dryRunCaches are one for each field, with its defaults set, and one with all fields.
func dryRunCaches(p *scenarioRun) []dryRunCache {
	p.Helper()
	authority, err := certificate.New("e2e")
	p.Check(err)
	pair, err := authority.Server("e2e")
	p.Check(err)
	all := dryRunConfig(p).Caches
	cases := make([]dryRunCache, 0, len(all))
	for _, c := range all {
		var secrets cache.Secrets
		if c.SecretReferenceName != nil {
			secrets.Credentials = &cache.Credentials{Username: []byte("@robot"), Password: []byte("\"$#&:\"\r\n\xff\x00")}
		}
		if c.CABundleSecretReferenceName != nil {
			secrets.CABundle = authority.PEM()
		}
		if c.HTTP != nil {
			secrets.Certificate = &cache.Certificate{Certificate: pair.Certificate, PrivateKey: pair.Key}
		}
		cases = append(cases, dryRunCache{c, secrets})
	}
	return cases
}

// dryRunConfig is a valid config with the caches of the scenario, with defaults.
func dryRunConfig(p *scenarioRun) *v1alpha3.RegistryConfig {
	p.Helper()
	volume := &v1alpha3.Volume{Size: ptr.To(resource.MustParse("1500Mi")), StorageClassName: ptr.To("fast")}
	collection := &v1alpha3.GarbageCollection{TTL: metav1.Duration{Duration: 90 * time.Minute}}
	proxy := &v1alpha3.Proxy{
		HTTPProxy: ptr.To("http://proxy.example:3128"), HTTPSProxy: ptr.To("https://[2001:db8::2]:3129"),
		NoProxy: ptr.To("registry.corp.example,10.250.0.0/16,.corp.example:5000"),
	}
	twice := &v1alpha3.HighAvailability{Enabled: true}
	config := &v1alpha3.RegistryConfig{Caches: []v1alpha3.RegistryCache{
		{Upstream: "docker.io"},
		{Upstream: strings.Repeat("a123456789.", 22) + "example.com"},
		{Upstream: strings.Repeat("b", 63) + ".example:65535", RemoteURL: ptr.To("http://10.1.2.3:8080")},
		{Upstream: "10.1.2.3"},
		{Upstream: "[2001:db8::1]"},
		{Upstream: "volume.example", Volume: volume, GarbageCollection: collection},
		{Upstream: "for-ever.example", GarbageCollection: &v1alpha3.GarbageCollection{}},
		{Upstream: "credentials.example", SecretReferenceName: ptr.To("credentials")},
		{Upstream: "ca.example", CABundleSecretReferenceName: ptr.To("ca")},
		{Upstream: "proxy.example", Proxy: proxy},
		{Upstream: "tls.example", HTTP: &v1alpha3.HTTP{TLS: true}},
		{Upstream: "twice.example", HighAvailability: twice},
		{Upstream: "suffix.example", ServiceNameSuffix: ptr.To(strings.Repeat("s", v1alpha3.MaxServiceNameSuffixLength))},
		{
			Upstream: "[2001:db8::1]:5000", RemoteURL: ptr.To("https://[2001:db8::1]:5000"), Volume: volume, GarbageCollection: collection,
			SecretReferenceName: ptr.To("credentials"), CABundleSecretReferenceName: ptr.To("ca"), Proxy: proxy,
			HTTP: &v1alpha3.HTTP{TLS: true}, HighAvailability: twice, ServiceNameSuffix: ptr.To("all"),
		},
	}}
	v1alpha3.SetDefaults(config)
	if errs := v1alpha3.Validate(config); len(errs) > 0 {
		p.Fatalf("the config is not valid: %v", errs.ToAggregate())
	}
	return config
}
