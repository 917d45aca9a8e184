package cache_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/controller/cache"
)

// FuzzRender feeds arbitrary bytes as providerConfig and as contents of the referenced Secrets
// through the whole pipeline. Every input that decodes and is valid must render to objects that an
// API server accepts, and to a configuration, a unit and a hosts.toml that parse to the same
// values.
//
//	go test -run=none -fuzz=FuzzRender -fuzztime=1h -fuzzminimizetime=5x ./controller/cache
func FuzzRender(f *testing.F) {
	for _, config := range seeds {
		f.Add([]byte(config), []byte("@robot"), []byte("it's \"$#&:\"\r\n\xff"), newCA(f))
	}
	f.Fuzz(func(t *testing.T, raw, username, password, bundle []byte) {
		config, err := v1alpha3.DecodeConfig(raw)
		if err != nil {
			return
		}
		v1alpha3.SetDefaults(config)
		if len(v1alpha3.Validate(config)) > 0 {
			return
		}
		bundle = validBundle(bundle)
		names, identities := map[string]bool{}, v1alpha3.Identify(config.Caches, nil)
		for i, c := range config.Caches {
			objects, err := cache.Objects(c, identities[i], fuzzedShoot, fuzzedSecrets(c, username, password, bundle))
			if err != nil {
				t.Fatalf("%s: %v", c.Upstream, err)
			}
			services, err := cache.Services(c, identities[i], fuzzedShoot)
			if err != nil {
				t.Fatalf("%s: %v", c.Upstream, err)
			}
			objects = append(objects, services...)
			for _, object := range objects {
				checkObject(t, object)
				if id := fmt.Sprintf("%T/%s", object, object.GetName()); names[id] {
					t.Errorf("%s is there twice", id)
				} else {
					names[id] = true
				}
			}
			checkCache(t, c, identities[i], objects, username, password)
		}
		checkNode(t, config, bundle)
	})
}

var seeds = []string{
	`{"apiVersion":"registry.extensions.gardener.cloud/v1alpha3","kind":"RegistryConfig","caches":[{"upstream":"docker.io"},` +
		`{"upstream":"ghcr.io:443","remoteURL":"https://ghcr.io/","volume":{"size":"100Gi","storageClassName":"premium"},"garbageCollection":{"ttl":"24h0m0s"}}]}`,
	`{"caches":[{"upstream":"a.test","remoteURL":"http://[2001:db8::1]:5000","secretReferenceName":"c","caBundleSecretReferenceName":"b","http":{"tls":true},` +
		`"highAvailability":{"enabled":true},"serviceNameSuffix":"s","proxy":{"httpProxy":"http://p.test:1","httpsProxy":"https://p.test",` +
		`"noProxy":"a.test:1, *.b.test,::1,10.0.0.0/8"}}],"apiVersion":"registry.extensions.gardener.cloud/v1alpha3","kind":"RegistryConfig"}`,
	"apiVersion: registry.extensions.gardener.cloud/v1alpha3\nkind: RegistryConfig\ncaches:\n- upstream: '[2001:db8::1]:5000'\n  garbageCollection: {ttl: 0s}\n" +
		"- upstream: a-b.c\n  volume: {size: 1e9}\n- upstream: a.b-c\n",
}

var fuzzedShoot = cache.Shoot{
	Image:                 "registry.test/registry-cache:v1",
	KubernetesVersion:     "1.36.4",
	Networks:              []string{"100.64.0.0/12", "fd00:10::/56"},
	VerticalPodAutoscaler: true,
}

// validBundle returns the CA bundle that the controller reads from a Secret with this content, or
// nil if the controller rejects the Secret.
func validBundle(bundle []byte) []byte {
	secret := &corev1.Secret{Immutable: new(true), Data: map[string][]byte{v1alpha3.KeyCABundle: bundle}}
	if len(v1alpha3.ValidateCABundle(secret, nil)) > 0 {
		return nil
	}
	return v1alpha3.CABundle(secret)
}

// newCA returns a PEM certificate with text around it.
func newCA(f *testing.F) []byte {
	f.Helper()
	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	template := &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		f.Fatal(err)
	}
	return append([]byte("# CA ''' \r\n"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
}

// fuzzedSecrets returns the contents of the Secrets that a cache references.
func fuzzedSecrets(c v1alpha3.RegistryCache, username, password, bundle []byte) cache.Secrets {
	var secrets cache.Secrets
	if c.SecretReferenceName != nil {
		secrets.Credentials = &cache.Credentials{Username: username, Password: password}
	}
	if c.CABundleSecretReferenceName != nil {
		secrets.CABundle = bundle
	}
	if c.HTTP != nil && c.HTTP.TLS {
		secrets.Certificate = &cache.Certificate{Certificate: []byte("certificate"), PrivateKey: []byte("key")}
	}
	return secrets
}
